const EXPORT = /export\s*\{\s*Hono as HonoBase\s*\};?/

/** Hono's base class becomes one that mounts the binding when it has its router. Clones of an application have its routes already. */
export const mount = {
  name: 'mount once-per-key',
  enforce: 'pre',
  transform(code, id) {
    if (!/hono-base\.(?:ts|js)$/.test(id.split('?')[0])) return null
    if (!EXPORT.test(code)) throw new Error('Hono no longer exports its base class as HonoBase.')
    return code.replace(EXPORT, MOUNTED)
  },
}

const MOUNTED = `class Mounted extends Hono {
  constructor(options) {
    super(options)
    globalThis[Symbol.for('once-per-key suites')].mountHono(this)
  }
}
export { Mounted as HonoBase }`
