// Jest loads modules by itself: this runs in its sandbox before each file.
const { Blob } = require('node:buffer')
const { ReadableStream } = require('node:stream/web')

// Old ones have fewer globals than Node.
globalThis.Blob ??= Blob
globalThis.ReadableStream ??= ReadableStream
globalThis.Response ??= class Response {}

require('./mount.cjs')
const { mountKoa } = globalThis[Symbol.for('once-per-key suites')]
mountKoa(require(require.resolve('koa', { paths: [process.env.SUITE_FOLDER] })))
