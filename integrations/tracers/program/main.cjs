// `node --require start/TRACER.cjs program/main.cjs` prints, as JSON, what clients were
// answered on each store by each binding, and the methods that a tracer may have changed.
const { BINDINGS } = require('./bindings.cjs')
const { newest } = require('./packages.cjs')
const { STORES } = require('./stores.cjs')

const { singleTenant } = newest('once-per-key')

const IN_ONE = 'one transaction without a claim'

main().then(
  (told) => {
    process.stdout.write(`\n${JSON.stringify(told)}`, () => process.exit(0))
  },
  (error) => {
    console.error(error)
    process.exit(1)
  },
)

async function main() {
  const told = {}
  for (const [name, open] of Object.entries(STORES)) {
    const opened = await open()
    told[name] = {}
    for (const [binding, serve] of Object.entries(BINDINGS)) told[name][binding] = await tryOut(opened, serve, binding)
    await opened.close()
  }
  return { told, methods: methodsOf() }
}

async function tryOut(opened, serve, binding) {
  const told = {}
  for (const [name, play] of Object.entries(PLAYS)) {
    if (name.includes('transaction') && opened.write === undefined) continue
    const options = { store: opened.store, scope: singleTenant, onEvent: () => {} }
    if (name === IN_ONE) options.effects = 'in-transaction'
    told[name] = await play(opened, `${binding} ${name}`, (handle) => serve(options, handle))
  }
  return told
}

const PLAYS = {
  async 'a request and its replay'(_opened, key, serve) {
    let runs = 0
    const { post, close } = await serve(async (_context, answer) => answer(201, `run-${++runs}`))
    const told = [await post(key), await post(key)]
    await close()
    return told
  },

  async 'a request while it runs'(_opened, key, serve) {
    let go
    let begun
    const hasBegun = new Promise((resolve) => {
      begun = resolve
    })
    const mayGo = new Promise((resolve) => {
      go = resolve
    })
    const { post, close } = await serve(async (_context, answer) => {
      begun()
      await mayGo
      return answer(201, 'run')
    })
    const first = post(key)
    await Promise.race([hasBegun, first])
    const second = await post(key)
    go()
    const told = [second, await first]
    await close()
    return told
  },

  async 'a step'(_opened, key, serve) {
    let charges = 0
    let runs = 0
    const { post, close } = await serve(async (context, answer) => {
      const charge = await context.step('charge', async () => `charge-${++charges}`)
      return ++runs === 1 ? answer(503, 'busy') : answer(201, charge)
    })
    const told = [await post(key), await post(key), await post(key), `${charges} charges`]
    await close()
    return told
  },

  'a transaction': pays,
  [IN_ONE]: pays,

  async 'a transaction that fails first'({ store, write, countOf, isSync }, key, serve) {
    let runs = 0
    const { post, close } = await serve(async (context, answer) => {
      const answered = () => {
        if (++runs === 1) throw new Error('no')
        return answer(201, `run-${runs}`, isSync)
      }
      return store.transaction(context, (tx) => after(write(tx, key), answered))
    })
    const told = [await post(key), await countOf(key), await post(key), await post(key), await countOf(key)]
    await close()
    return told
  },
}

async function pays({ store, write, countOf, isSync }, key, serve) {
  const { post, close } = await serve(async (context, answer) =>
    store.transaction(context, (tx) => after(write(tx, key), () => answer(201, 'paid', isSync))),
  )
  const told = [await post(key), await post(key), await countOf(key)]
  await close()
  return told
}

/** At once, where nothing was promised: SQLite does not wait. */
function after(written, go) {
  return written === undefined ? go() : written.then(go)
}

/** Methods that tracers change, as text. */
function methodsOf() {
  return {
    pg: String(newest('pg').Client.prototype.query),
    mysql2: String(newest('mysql2').Connection.prototype.query),
    express: String(newest('express').application.use),
  }
}
