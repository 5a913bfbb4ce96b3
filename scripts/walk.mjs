// `npm run walk`: what of the package one request on Express with a MemoryStore passes. The files and functions that it calls, and how many
// of the package's own frames are on the stack when its first byte leaves. With `-- names` it lists them too.
import { createServer, ServerResponse } from 'node:http'
import { Session } from 'node:inspector/promises'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { build } from 'tsup'

const ROOT = fileURLToPath(new URL('../', import.meta.url))
const OUT = `${ROOT}build/walk/`
const lists = process.argv.includes('names')

// File by file, so that what is counted are the files that a reader opens.
await build({
  entry: ['src/**/*.ts', 'adapters/**/*.ts'].map((pattern) => ROOT + pattern),
  ...{ bundle: false, format: 'esm', target: 'node20', outDir: OUT, config: false, silent: true, clean: true },
})
Error.stackTraceLimit = Number.POSITIVE_INFINITY

/** Before the package is loaded, for which it is Node's own. The longest stack on which a response was handed to Node, of the request that was sent last. */
let frames = []
const { end } = ServerResponse.prototype
ServerResponse.prototype.end = function (...args) {
  const own = new Error().stack.split('\n').filter((line) => line.includes(OUT))
  if (own.length > frames.length) frames = own
  return Reflect.apply(end, this, args)
}

const { idempotency } = await import(`${OUT}src/index.js`)
const { MemoryStore } = await import(`${OUT}adapters/memory/index.js`)

const app = express()
const once = idempotency({ store: new MemoryStore(), scope: () => 'acme' })
app.post('/payouts', express.json(), once, (req, res) => {
  if (req.body.fails) res.status(422).json({ error: 'refused' })
  else res.status(201).location('/payouts/1').json({ id: 1 })
})
const server = createServer(app).listen(0, '127.0.0.1')
await new Promise((resolve) => server.once('listening', resolve))
async function post(key, body) {
  const headers = { 'Content-Type': 'application/json', 'Idempotency-Key': key }
  const url = `http://127.0.0.1:${server.address().port}/payouts`
  const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) })
  await response.text()
}

const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

/** What of the package is called until the response is there. */
async function walk(key, body) {
  await session.post('Profiler.takePreciseCoverage')
  frames = []
  await post(key, body)
  const { result } = await session.post('Profiler.takePreciseCoverage')
  const called = []
  for (const { url, functions } of result) {
    if (!url.includes('/build/walk/')) continue
    const file = url.slice(url.indexOf('/build/walk/') + '/build/walk/'.length)
    for (const { functionName, ranges } of functions.slice(1)) {
      if (ranges[0].count > 0) called.push([file, functionName])
    }
  }
  return called
}

/** Before anything is counted, whatever is made once has been made. */
for (const [key, body] of [
  ['warm', {}],
  ['warm', {}],
  ['warm-2', { fails: true }],
])
  await post(key, body)

console.log('| a request on Express, memory | files | functions | own frames when it leaves |')
console.log('| --- | ---: | ---: | ---: |')
for (const [what, key, body] of [
  ['first', 'one', {}],
  ['replay', 'one', {}],
  ['failure', 'two', { fails: true }],
]) {
  const called = await walk(key, body)
  const files = new Set(called.map(([file]) => file))
  console.log(`| ${what} | ${files.size} | ${called.length} | ${frames.length} |`)
  if (!lists) continue
  for (const file of files)
    console.log(`  ${file}: ${called.flatMap(([of, name]) => (of === file ? [name] : [])).join(' ')}`)
  console.log(frames.map((frame) => `  ${frame.trim()}`).join('\n'))
}
server.close()
server.closeAllConnections()
