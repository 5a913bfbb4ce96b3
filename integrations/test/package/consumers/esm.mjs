import { createRequire } from 'node:module'
import * as face from 'once-per-key'
import * as client from 'once-per-key/client'
import * as clientNode from 'once-per-key/client/node'
import * as core from 'once-per-key/core'
import * as fastify from 'once-per-key/fastify'
import * as fetch from 'once-per-key/fetch'
import * as hono from 'once-per-key/hono'
import * as http from 'once-per-key/http'
import * as koa from 'once-per-key/koa'
import * as memory from 'once-per-key/memory'
import * as mysql from 'once-per-key/mysql'
import * as nest from 'once-per-key/nest'
import * as opentelemetry from 'once-per-key/opentelemetry'
import * as postgres from 'once-per-key/postgres'
import * as receiver from 'once-per-key/receiver'
import * as redis from 'once-per-key/redis'
import * as run from 'once-per-key/run'
import * as sealed from 'once-per-key/sealed'
import * as sqlite from 'once-per-key/sqlite'
import * as testing from 'once-per-key/testing'
import * as webhooks from 'once-per-key/webhooks'
import exercise from './exercise.cjs'

const manifest = createRequire(import.meta.url)('once-per-key/package.json')

const entries = {
  face,
  client,
  clientNode,
  core,
  fastify,
  fetch,
  hono,
  http,
  koa,
  memory,
  mysql,
  nest,
  opentelemetry,
  redis,
  postgres,
  receiver,
  run,
  sealed,
  sqlite,
  testing,
  webhooks,
  manifest,
}
console.log(JSON.stringify(await exercise(entries)))
