import type { AnyClient } from './client-on-trial.js'

/** Every client but `pg`, which the tests of the store itself use. */
export const CLIENTS: readonly (readonly [name: string, open: () => Promise<AnyClient>])[] = [
  ['postgres.js', async () => (await import('./postgres-js.js')).open()],
  ['Drizzle', async () => (await import('./drizzle.js')).open()],
  ['Kysely', async () => (await import('./kysely.js')).open()],
  ['Knex', async () => (await import('./knex.js')).open()],
  ['Sequelize', async () => (await import('./sequelize.js')).open()],
  ['TypeORM', async () => (await import('./typeorm.js')).open()],
  ['MikroORM', async () => (await import('./mikro-orm.js')).open()],
  ['Prisma', async () => (await import('./prisma.js')).open()],
]
