import { createRequire } from 'node:module'
import * as face from 'once-per-key'
import * as core from 'once-per-key/core'
import * as memory from 'once-per-key/memory'
import * as testing from 'once-per-key/testing'
import exercise from './exercise.cjs'

const manifest = createRequire(import.meta.url)('once-per-key/package.json')

console.log(JSON.stringify(await exercise({ face, core, memory, testing, manifest })))
