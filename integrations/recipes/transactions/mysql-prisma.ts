import { PrismaMariaDb } from '@prisma/adapter-mariadb'
import { createPool } from 'mysql2/promise'
import { MySqlStore, type MySqlTransactions } from 'once-per-key/mysql'
import { type Prisma, PrismaClient } from './generated/client.js'

const uri = process.env.DATABASE_URL ?? 'mysql://localhost/payments'

export const prisma = new PrismaClient({ adapter: new PrismaMariaDb(uri, { useTextProtocol: true }) })
export const pool = createPool({ uri, connectionLimit: 4 }) // for the store alone

interface Options {
  readonly isolationLevel?: Prisma.TransactionIsolationLevel
  readonly maxWait?: number
  readonly timeout?: number
}

/** Such as `store.transaction(context, work, { isolationLevel: 'Serializable', timeout: 20_000 })`. */
export const transactions: MySqlTransactions<Prisma.TransactionClient, Options> = {
  transaction: (work, options) => prisma.$transaction(work, options),
  run: (tx, { strings, values }) => tx.$queryRaw(strings, ...values),
}

export const store = new MySqlStore({ pool, transactions })
