export { CertainFailure, type CertainFailureOptions } from '../core/index.js'
export type {
  AppSettings,
  ClimateActionMode,
  EmailNotification,
  NotificationSettings,
  WebhookFailureNotification,
} from './events/app-settings.js'
export {
  isKnownEvent,
  type KnownWebhookEvent,
  parseWebhookEvent,
  type UnknownEvent,
  type WebhookEvent,
  type WebhookEventType,
  webhookEventSchema,
  webhookEventTypes,
} from './events/event.js'
export { WebhookEventError, type WebhookEventIssue } from './events/event-error.js'
export { looksLikeEmailAddress, type WebhookEnvelope } from './events/fields.js'
export type {
  MandateCreditor,
  MandateCreditorAddress,
  MandateSetupStartedEvent,
  MandateSetupStartedPayload,
  MandateSignature,
} from './events/mandate-setup-started.js'
export type {
  BlacklistedProviders,
  MarketCapabilities,
  MerchantAddress,
  MerchantApp,
  MerchantPayout,
  MerchantPlan,
  MerchantUpdatedEvent,
  MerchantUpdatedPayload,
} from './events/merchant-updated.js'
export type { Beneficiary, CompanyAddress, IdDoc, OnboardingData } from './events/onboarding-data.js'
export type { AboutDelivery, WebhookReceiverEvent } from './receiver/delivery/receiver-event.js'
export type { ReceiverRefusalCode } from './receiver/delivery/refusal.js'
export { type WebhookHandlers, type WebhookReceiverOptions, webhookReceiver } from './receiver/documented-receiver.js'
export type { Parse, ParsedEvent } from './receiver/parse.js'
export type { Receive, WebhookReceiver } from './receiver/receiver.js'
export type {
  CommonReceiverOptions,
  EventOfType,
  ParsedReceiverOptions,
  Verify,
  WebhookContext,
  WebhookHandler,
} from './receiver/receiver-options.js'
export {
  githubWebhooks,
  type HmacSha256Options,
  hmacSha256,
  type SenderSecrets,
  type StripeOptions,
  shopifyWebhooks,
  stripeWebhooks,
} from './signatures/hmac-sha256.js'
export { type StandardWebhooksOptions, standardWebhooks } from './signatures/standard-webhooks.js'
export type { VerifySignature } from './signatures/verify-signature.js'
