// A tracer knows a package by the folder that it is in, so an alias would not be traced: older versions are in a folder of their own.
const { createRequire } = require('node:module')
const { join } = require('node:path')

exports.newest = createRequire(join(__dirname, '../../package.json'))
exports.older = createRequire(join(__dirname, '../package.json'))
