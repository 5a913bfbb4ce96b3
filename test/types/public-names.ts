// The names that the package's contract promises: this compiles as long as each is there.

export type {
  IdempotencyContext,
  IdempotencyEvent,
  IdempotencyOptions,
  Problem,
} from 'once-per-key'
export { bodyField, IdempotencyError, idempotency, ietfDraft, singleTenant } from 'once-per-key'
export { type Begun, type Claim, createEngine, type Decision, type RequestFacts, type Store } from 'once-per-key/core'
export { MemoryStore } from 'once-per-key/memory'
export { RedisStore } from 'once-per-key/redis'
export { storeLaws } from 'once-per-key/testing'
export {
  hmacSha256,
  isKnownEvent,
  type MandateSetupStartedEvent,
  type MandateSetupStartedPayload,
  type MerchantUpdatedEvent,
  type MerchantUpdatedPayload,
  parseWebhookEvent,
  standardWebhooks,
  type WebhookEvent,
  webhookEventSchema,
  webhookReceiver,
} from 'once-per-key/webhooks'
