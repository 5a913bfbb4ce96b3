export {
  type AsResult,
  CertainFailure,
  type CertainFailureOptions,
  type FailureReason,
  type JsonOf,
  type PreviousOutcome,
  type Refusal,
  type StepInHand,
  type StepOf,
  type StepOptions,
  type Store,
  type StoreFailure,
} from '../../core/index.js'
export type { Scope, WaitUntil } from '../../http/index.js'
export { WebhookEventError, type WebhookEventIssue } from '../events/event-error.js'
export {
  githubWebhooks,
  type HmacSha256Options,
  hmacSha256,
  type SenderSecrets,
  type StripeOptions,
  shopifyWebhooks,
  stripeWebhooks,
} from '../signatures/hmac-sha256.js'
export { type StandardWebhooksOptions, standardWebhooks } from '../signatures/standard-webhooks.js'
export type { VerifySignature } from '../signatures/verify-signature.js'
export type { AnyRequest } from './delivery/delivery.js'
export type { DeliverySummary, WebhookReceiverEvent } from './delivery/receiver-event.js'
export type { ReceiverRefusalCode } from './delivery/refusal.js'
export type { ParseDelivery, ParsedEvent } from './parse.js'
export { type WebhookReceiver, type WebhookRequestListener, webhookReceiver } from './receiver.js'
export type {
  CommonReceiverOptions,
  EventOfType,
  ParsedReceiverOptions,
  Verify,
  WebhookContext,
  WebhookHandler,
  WebhookHandlers,
} from './receiver-options.js'
