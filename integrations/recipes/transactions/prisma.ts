import { PrismaPg } from '@prisma/adapter-pg'
import { PostgresStore, type PostgresTransactions } from 'once-per-key/postgres'
import { Pool } from 'pg'
import { type Prisma, PrismaClient } from './generated/client.js'

const connectionString = process.env.DATABASE_URL ?? 'postgres://localhost/payments'

export const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString }) })
export const pool = new Pool({ connectionString, max: 4 }) // for the store alone
pool.on('error', console.error) // without a listener, an idle connection that breaks ends the process

interface Options {
  readonly isolationLevel?: Prisma.TransactionIsolationLevel
  readonly maxWait?: number
  readonly timeout?: number
}

/** Such as `store.transaction(context, work, { isolationLevel: 'Serializable', timeout: 20_000 })`. */
export const transactions: PostgresTransactions<Prisma.TransactionClient, Options> = {
  transaction: (work, options) => prisma.$transaction(work, options),
  run: (tx, { strings, values }) => tx.$queryRaw(strings, ...values),
}

export const store = new PostgresStore({ pool, transactions })
