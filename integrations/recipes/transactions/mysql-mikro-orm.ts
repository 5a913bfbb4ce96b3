import { MikroORM, type SqlEntityManager, type TransactionOptions } from '@mikro-orm/mysql'
import { createPool } from 'mysql2/promise'
import { MySqlStore, type MySqlTransactions } from 'once-per-key/mysql'

const clientUrl = process.env.DATABASE_URL ?? 'mysql://localhost/payments'

export const orm = await MikroORM.init({ clientUrl, entities: [], discovery: { warnWhenNoEntities: false } })
export const pool = createPool({ uri: clientUrl, connectionLimit: 4 }) // for the store alone

/** Such as `store.transaction(context, work, { isolationLevel: IsolationLevel.SERIALIZABLE })`. */
export const transactions: MySqlTransactions<SqlEntityManager, TransactionOptions> = {
  transaction: (work, options) => orm.em.fork().transactional(work, options),
  async run(em, { text, values }) {
    await em.flush() // so that what completes the record comes last
    return em.execute(text, [...values])
  },
}

export const store = new MySqlStore({ pool, transactions })
