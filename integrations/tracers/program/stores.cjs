// Each opens a store on a server that this process is told of, with a table of effects where it has transactions.
const { join } = require('node:path')
const { newest, older } = require('./packages.cjs')

const { POSTGRES_URL, MYSQL_URL, REDIS_URL, FOLDER } = process.env
const EFFECTS = 'CREATE TABLE effects (id VARCHAR(100) PRIMARY KEY)'

exports.STORES = {
  async pg() {
    const { Pool } = newest('pg')
    const { PostgresStore } = newest('once-per-key/postgres')
    const [pool, transactions] = [4, 10].map((max) => new Pool({ connectionString: POSTGRES_URL, max }))
    const store = new PostgresStore({ pool, transactions, sweeps: false })
    await store.migrate()
    await pool.query(EFFECTS)
    return {
      store,
      write: (tx, id) => tx.query('INSERT INTO effects VALUES ($1)', [id]),
      countOf: async (id) => (await pool.query('SELECT FROM effects WHERE id = $1', [id])).rows.length,
      close: () => Promise.all([pool.end(), transactions.end()]),
    }
  },

  async mysql2() {
    const { createPool } = newest('mysql2/promise')
    const { MySqlStore } = newest('once-per-key/mysql')
    const [pool, transactions] = [4, 10].map((connectionLimit) => createPool({ uri: MYSQL_URL, connectionLimit }))
    const store = new MySqlStore({ pool, transactions, sweeps: false })
    await store.migrate()
    await pool.query(EFFECTS)
    return {
      store,
      write: (tx, id) => tx.query('INSERT INTO effects VALUES (?)', [id]),
      countOf: async (id) => (await pool.query('SELECT 1 FROM effects WHERE id = ?', [id]))[0].length,
      close: () => Promise.all([pool.end(), transactions.end()]),
    }
  },

  async sqlite() {
    const { SqliteStore } = newest('once-per-key/sqlite')
    const database = openDatabase(join(FOLDER, 'records.sqlite'))
    const store = new SqliteStore({ database, sweeps: false })
    await store.migrate()
    database.exec(EFFECTS)
    return {
      store,
      isSync: true,
      write: (tx, id) => void tx.prepare('INSERT INTO effects VALUES (?)').run(id),
      countOf: async (id) => database.prepare('SELECT 1 FROM effects WHERE id = ?').all(id).length,
      close: () => database.close(),
    }
  },

  'ioredis 6': onIoredis(newest),
  'ioredis 5': onIoredis(older),
  'node-redis 6': onNodeRedis(newest),
  'node-redis 5': onNodeRedis(older),
}

/** better-sqlite3 is compiled for the Node that runs the tests; another one, for a tracer that needs it, brings its own driver. */
function openDatabase(file) {
  const own = process.getBuiltinModule?.('node:sqlite')
  if (own !== undefined) return new own.DatabaseSync(file)
  const Database = newest('better-sqlite3')
  return new Database(file)
}

function onIoredis(load) {
  return async () => {
    const { Redis } = load('ioredis')
    const client = new Redis(REDIS_URL)
    return { store: redisStore(client), close: () => client.disconnect() }
  }
}

function onNodeRedis(load) {
  return async () => {
    const client = await load('redis').createClient({ url: REDIS_URL }).connect()
    return { store: redisStore(client), close: () => client.destroy() }
  }
}

let stores = 0

function redisStore(client) {
  const { RedisStore } = newest('once-per-key/redis')
  return new RedisStore({ client, prefix: `process-${process.pid}-${++stores}:` })
}
