import { MikroORM, type SqlEntityManager, type TransactionOptions } from '@mikro-orm/postgresql'
import { PostgresStore, type PostgresTransactions } from 'once-per-key/postgres'
import { Pool } from 'pg'

const clientUrl = process.env.DATABASE_URL ?? 'postgres://localhost/payments'

export const orm = await MikroORM.init({ clientUrl, entities: [], discovery: { warnWhenNoEntities: false } })
export const pool = new Pool({ connectionString: clientUrl, max: 4 }) // for the store alone
pool.on('error', console.error) // without a listener, an idle connection that breaks ends the process

/** Such as `store.transaction(context, work, { isolationLevel: IsolationLevel.SERIALIZABLE })`. */
export const transactions: PostgresTransactions<SqlEntityManager, TransactionOptions> = {
  transaction: (work, options) => orm.em.fork().transactional(work, options),
  async run(em, { strings, values }) {
    await em.flush() // so that what completes the record comes last
    return em.execute(strings.join('?'), [...values])
  },
}

export const store = new PostgresStore({ pool, transactions })
