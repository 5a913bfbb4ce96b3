// Under `exactOptionalPropertyTypes` too, an option may be `undefined`, as in `leaseMs: config.leaseMs`: it is absent then. This
// compiles as long as each option that may be left out says so.

import type { IdempotencyOptions } from 'once-per-key'
import type { ClientOptions } from 'once-per-key/client'
import type { CasStoreOptions, CertainFailureOptions, EngineOptions } from 'once-per-key/core'
import type { FetchIdempotencyOptions, HandleOptions } from 'once-per-key/fetch'
import type { HonoIdempotencyOptions } from 'once-per-key/hono'
import type { BodyFieldOptions } from 'once-per-key/http'
import type { MemoryStoreOptions } from 'once-per-key/memory'
import type { MySqlStoreOptions } from 'once-per-key/mysql'
import type { NestOptions } from 'once-per-key/nest'
import type { InstrumentOptions } from 'once-per-key/opentelemetry'
import type { PoolTransactionOptions, PostgresStoreOptions } from 'once-per-key/postgres'
import type { RedisStoreOptions } from 'once-per-key/redis'
import type { Operation, RunnerOptions } from 'once-per-key/run'
import type { SealedOptions } from 'once-per-key/sealed'
import type { SqliteStoreOptions } from 'once-per-key/sqlite'
import type { BindingLawsOptions, ExpectOnceOptions, ExpectOnceRequest, StoreLawsOptions } from 'once-per-key/testing'
import type { StandardWebhooksOptions, WebhookReceiverOptions } from 'once-per-key/webhooks'
import type { ParsedReceiverOptions, RawReceiverOptions } from '../../src/webhooks/receiver/receiver-options.js'
import type { HmacSha256Options, StripeOptions } from '../../src/webhooks/signatures/hmac-sha256.js'

/** The names of the options that may be left out, and yet may not be `undefined`; but for those of another form of the options. */
type Strict<Options> = Options extends unknown
  ? { [Name in keyof Options]-?: IsStrict<Options, Name> extends true ? Name : never }[keyof Options]
  : never

type IsStrict<Options, Name extends keyof Options> = [Exclude<Options[Name], undefined>] extends [never]
  ? false
  : object extends Pick<Options, Name>
    ? { [Each in Name]: undefined } extends Pick<Options, Name>
      ? false
      : true
    : false

type Nothing = readonly [
  Strict<IdempotencyOptions>,
  Strict<BodyFieldOptions>,
  Strict<ClientOptions>,
  Strict<CasStoreOptions<string>>,
  Strict<CertainFailureOptions>,
  Strict<EngineOptions>,
  Strict<FetchIdempotencyOptions>,
  Strict<Omit<HandleOptions, 'scope'>>, // A scope that is `undefined` is misuse, never an absent one.
  // biome-ignore lint/suspicious/noExplicitAny: of any application
  Strict<HonoIdempotencyOptions<any>>,
  Strict<MemoryStoreOptions>,
  Strict<MySqlStoreOptions>,
  Strict<NestOptions>,
  Strict<InstrumentOptions>,
  Strict<PoolTransactionOptions>,
  Strict<PostgresStoreOptions>,
  Strict<RawReceiverOptions<never>>,
  Strict<ParsedReceiverOptions<never>>,
  Strict<RedisStoreOptions>,
  Strict<Operation<null>>,
  Strict<RunnerOptions>,
  Strict<SealedOptions>,
  Strict<SqliteStoreOptions>,
  Strict<BindingLawsOptions>,
  Strict<ExpectOnceOptions>,
  Strict<ExpectOnceRequest>,
  Strict<StoreLawsOptions>,
  Strict<StandardWebhooksOptions>,
  Strict<WebhookReceiverOptions>,
  Strict<HmacSha256Options>,
  Strict<StripeOptions>,
]

export type Names = Nothing[number]
export const none: [Names] extends [never] ? true : Names = true
