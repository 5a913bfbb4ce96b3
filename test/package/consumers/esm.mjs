import { createRequire } from 'node:module'
import * as face from 'once-per-key'
import * as core from 'once-per-key/core'
import * as memory from 'once-per-key/memory'
import * as redis from 'once-per-key/redis'
import * as testing from 'once-per-key/testing'
import * as webhooks from 'once-per-key/webhooks'
import exercise from './exercise.cjs'

const manifest = createRequire(import.meta.url)('once-per-key/package.json')

console.log(JSON.stringify(await exercise({ face, core, memory, redis, testing, webhooks, manifest })))
