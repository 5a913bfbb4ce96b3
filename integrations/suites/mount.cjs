// Loaded before a suite: mounts the packed binding in front of every application that the suite makes.
const { randomUUID } = require('node:crypto')
const { appendFileSync, existsSync, readFileSync } = require('node:fs')
const { METHODS } = require('node:http')
const Module = require('node:module')
const { basename, dirname, join } = require('node:path')

/**
 * `each`: every request has a key. `none`: none has, so the binding is passed. `unbound`: what stands there does nothing, so that it
 * shows which tests only mind that there is one middleware, or hook, more.
 */
const KEYS = process.env.SUITE_KEYS
/** Gets a line for each application and each run, so that a suite in which nothing was mounted is found out. */
const COUNTS = process.env.SUITE_COUNTS
const PACKED = createPacked(process.env.SUITE_PACKED)

const HEADER = 'X-Key-Of-Suite'

/** For one application. `nothing` takes the binding's place. */
function bindingOf(entry, nothing) {
  count('application')
  if (KEYS === 'unbound') return nothing
  const { MemoryStore } = PACKED('once-per-key/memory')
  const { idempotency, singleTenant, withoutBody } = PACKED(entry)
  const options = {
    store: new MemoryStore(),
    scope: singleTenant,
    header: HEADER,
    methods: METHODS, // A GET shows as much as a POST.
    fingerprint: withoutBody(() => ''), // Suites do not mount a parser before.
  }
  // Fastify's not by `register`, which would load with the suite's own plugins, and later than they do.
  return entry === 'once-per-key/fastify' ? (app) => idempotency(app, options, () => {}) : idempotency(options)
}

/** By their files, because old runners do not know the `exports` of a package. */
function createPacked(folder) {
  const dist = join(folder, 'node_modules/once-per-key/dist')
  return (entry) => require(join(dist, `${entry.slice('once-per-key/'.length) || 'index'}.cjs`))
}

function count(what) {
  appendFileSync(COUNTS, `${what}\n`)
}

/** The key is there while the binding looks for it, and never for the suite. */
function lendKey({ rawHeaders }) {
  if (KEYS === 'each') rawHeaders.push(HEADER, randomUUID())
}

function takeKey({ rawHeaders }) {
  const at = rawHeaders.indexOf(HEADER)
  if (at === -1) return
  rawHeaders.splice(at, 2)
  count('run')
}

function mountExpress(application) {
  const { handle } = application
  const passed = new WeakSet()
  const protections = new WeakMap()
  application.handle = function handleOnce(req, res, callback) {
    // An application inside of another, or a mock of Express's own suite.
    if (passed.has(req) || req.rawHeaders === undefined) return handle.call(this, req, res, callback)
    passed.add(req)
    if (!protections.has(this))
      protections.set(
        this,
        bindingOf('once-per-key', (_req, _res, next) => next()),
      )
    lendKey(req)
    protections.get(this)(req, res, (error) => {
      takeKey(req)
      if (error && callback) callback(error)
      else if (error) throw error
      else handle.call(this, req, res, callback)
    })
  }
  return application
}

function mountKoa(Application) {
  const { callback } = Application.prototype
  const mounted = new WeakSet()
  Application.prototype.callback = function callbackOnce() {
    if (!mounted.has(this)) {
      mounted.add(this)
      const once = bindingOf('once-per-key/koa', (_ctx, next) => next())
      this.middleware.unshift(function protect(ctx, next) {
        lendKey(ctx.req)
        return once(ctx, () => {
          takeKey(ctx.req)
          return next()
        })
      })
    }
    return callback.call(this)
  }
  return Application
}

function mountFastify(fastify) {
  const mounted = (given) => {
    const app = fastify(given)
    app.addHook('preHandler', (request, _reply, done) => {
      lendKey(request.raw)
      done()
    })
    bindingOf('once-per-key/fastify', addEmptyHooks)(app)
    app.addHook('preHandler', (request, _reply, done) => {
      takeKey(request.raw)
      done()
    })
    return app
  }
  return Object.assign(mounted, fastify, { fastify: mounted, default: mounted })
}

/** As many as the plugin's. */
function addEmptyHooks(app) {
  app.addHook('preHandler', async () => {})
  app.addHook('onError', (_request, _reply, _error, done) => done())
  app.addHook('onSend', (_request, _reply, payload, done) => done(null, payload))
}

/** Called by Hono's constructor: with its router, an application is ready for middleware. */
function mountHono(app) {
  const once = bindingOf('once-per-key/hono', async (_c, next) => void (await next()))
  let router
  const mount = (given) => {
    const isFirst = router === undefined
    router = given
    if (isFirst) app.use('*', protect)
  }
  const protect = async (c, next) => {
    const { raw } = c.req
    // An application inside of another, or a mock of Hono's own suite.
    if (HONO_PASSED.has(c) || raw.headers === undefined) return next()
    HONO_PASSED.add(c)
    const { headers } = raw
    if (KEYS === 'each') headers.set(HEADER, randomUUID())
    return once(c, () => {
      if (headers.has(HEADER)) count('run')
      headers.delete(HEADER)
      return next()
    })
  }
  const given = app.router
  Object.defineProperty(app, 'router', { configurable: true, enumerable: true, get: () => router, set: mount })
  if (given !== undefined) mount(given)
}

const HONO_PASSED = new WeakSet()
globalThis[Symbol.for('once-per-key suites')] = { mountHono, mountKoa }

const MOUNTS = new Map([
  ['fastify/fastify.js', mountFastify],
  ['koa/application.js', mountKoa],
  ['express/application.js', mountExpress],
])

const load = Module._extensions['.js']
Module._extensions['.js'] = (module, filename) => {
  load(module, filename)
  const mount = MOUNTS.get(`${packageOf(filename)}/${basename(filename)}`)
  if (mount !== undefined) module.exports = mount(module.exports)
}

/** The name of the package whose main folder, or `lib`, has the file. */
function packageOf(filename) {
  if (!/[/\\](?:fastify|application)\.js$/.test(filename)) return ''
  const folder = dirname(filename)
  const manifest = join(basename(folder) === 'lib' ? dirname(folder) : folder, 'package.json')
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, 'utf8')).name : ''
}
