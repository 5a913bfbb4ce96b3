// An ES module whose store comes from a CommonJS dependency: two copies of the library in one process.
import { createRequire } from 'node:module'
import * as face from 'once-per-key'
import * as core from 'once-per-key/core'
import exercise from './exercise.cjs'

const require = createRequire(import.meta.url)
const entries = {
  face,
  core,
  fetch: require('once-per-key/fetch'),
  fastify: require('once-per-key/fastify'),
  hono: require('once-per-key/hono'),
  koa: require('once-per-key/koa'),
  nest: require('once-per-key/nest'),
  http: require('once-per-key/http'),
  client: require('once-per-key/client'),
  clientNode: require('once-per-key/client/node'),
  mysql: require('once-per-key/mysql'),
  memory: require('once-per-key/memory'),
  redis: require('once-per-key/redis'),
  postgres: require('once-per-key/postgres'),
  sqlite: require('once-per-key/sqlite'),
  sealed: require('once-per-key/sealed'),
  testing: require('once-per-key/testing'),
  webhooks: require('once-per-key/webhooks'),
  manifest: require('once-per-key/package.json'),
}

console.log(JSON.stringify(await exercise(entries)))
