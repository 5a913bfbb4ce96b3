const exercise = require('./exercise.cjs')

const entries = {
  client: require('once-per-key/client'),
  clientNode: require('once-per-key/client/node'),
  memory: require('once-per-key/memory'),
  mysql: require('once-per-key/mysql'),
  redis: require('once-per-key/redis'),
  postgres: require('once-per-key/postgres'),
  opentelemetry: require('once-per-key/opentelemetry'),
  run: require('once-per-key/run'),
  sqlite: require('once-per-key/sqlite'),
  sealed: require('once-per-key/sealed'),
  testing: require('once-per-key/testing'),
  receiver: require('once-per-key/receiver'),
  webhooks: require('once-per-key/webhooks'),
  core: require('once-per-key/core'),
  fetch: require('once-per-key/fetch'),
  fastify: require('once-per-key/fastify'),
  hono: require('once-per-key/hono'),
  koa: require('once-per-key/koa'),
  nest: require('once-per-key/nest'),
  http: require('once-per-key/http'),
  face: require('once-per-key'),
  manifest: require('once-per-key/package.json'),
}

exercise(entries).then((seen) => console.log(JSON.stringify(seen)))
