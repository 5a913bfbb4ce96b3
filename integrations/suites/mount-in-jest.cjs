// Jest loads modules by itself: this runs in its sandbox before each file.
require('./mount.cjs')
const { mountKoa } = globalThis[Symbol.for('once-per-key suites')]
mountKoa(require(require.resolve('koa', { paths: [process.env.SUITE_FOLDER] })))
