import { Inject, Injectable, Module, type OnApplicationShutdown } from '@nestjs/common'
import { Redis } from 'ioredis'
import { IdempotencyModule, IdempotencyService } from 'once-per-key/nest'
import { RedisStore } from 'once-per-key/redis'
import { Bank } from './bank.js'
import { PayoutsController } from './payouts.controller.js'

@Module({
  providers: [{ provide: Redis, useFactory: () => new Redis(process.env.REDIS_URL ?? 'redis://localhost:6379') }],
  exports: [Redis],
})
class RedisModule {}

/** Not `onModuleDestroy`, which Nest calls while requests still run: what they have done must still be stored. */
@Injectable()
class ClosesRedis implements OnApplicationShutdown {
  constructor(
    @Inject(IdempotencyService) private readonly idempotency: IdempotencyService,
    @Inject(Redis) private readonly redis: Redis,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    await this.idempotency.idle()
    await this.redis.quit()
  }
}

@Module({
  imports: [
    RedisModule,
    IdempotencyModule.forRootAsync({
      imports: [RedisModule],
      inject: [Redis],
      useFactory: (client: Redis) => ({
        store: new RedisStore({ client, prefix: 'payments:' }),
        scope: (request) => request.user?.merchantId,
      }),
    }),
  ],
  controllers: [PayoutsController],
  providers: [Bank, ClosesRedis],
})
export class RedisPaymentsModule {}
