import { Body, Controller, Inject, Module, Post, Res } from '@nestjs/common'
import type { Response } from 'express'
import { type IdempotencyContext, IdempotencyModule, Idempotent, Operation, singleTenant } from 'once-per-key/nest'
import { PostgresStore } from 'once-per-key/postgres'
import pg from 'pg'

const STORE = 'the store, with the pool of the application'

@Module({
  providers: [
    {
      provide: STORE,
      useFactory: async () => {
        const connectionString = process.env.DATABASE_URL
        const pools = [new pg.Pool({ connectionString, max: 4 }), new pg.Pool({ connectionString })] as const
        for (const pool of pools) pool.on('error', console.error)
        const store = new PostgresStore({ pool: pools[0], transactions: pools[1] })
        await store.migrate()
        return store
      },
    },
  ],
  exports: [STORE],
})
class StoreModule {}

@Controller('entries')
export class EntriesController {
  constructor(@Inject(STORE) private readonly store: PostgresStore<pg.Pool>) {}

  @Post()
  @Idempotent({ required: true })
  async create(
    @Body() { amount }: { amount: number },
    @Operation() operation: IdempotencyContext,
    @Res() response: Response,
  ): Promise<void> {
    await this.store.transaction(operation, async (tx) => {
      const { rows } = await tx.query('INSERT INTO entries (amount) VALUES ($1) RETURNING id', [amount])
      response.status(201).send({ id: rows[0].id }) // sent after the COMMIT
    })
  }
}

@Module({
  imports: [
    StoreModule,
    IdempotencyModule.forRootAsync({
      imports: [StoreModule],
      inject: [STORE],
      useFactory: (store: PostgresStore<pg.Pool>) => ({ store, scope: singleTenant }),
    }),
  ],
  controllers: [EntriesController],
})
export class EntriesModule {}
