export type {
  AppSettings,
  ClimateActionMode,
  EmailNotification,
  NotificationSettings,
  WebhookFailureNotification,
} from './app-settings.js'
export type { WebhookEnvelope } from './envelope.js'
export {
  isKnownEvent,
  type KnownWebhookEvent,
  parseWebhookEvent,
  type UnknownEvent,
  type WebhookEvent,
  type WebhookEventType,
  webhookEventSchema,
  webhookEventTypes,
} from './event.js'
export { WebhookEventError, type WebhookEventIssue } from './event-error.js'
export type {
  MandateCreditor,
  MandateCreditorAddress,
  MandateSetupStartedEvent,
  MandateSetupStartedPayload,
  MandateSignature,
} from './mandate-setup-started.js'
export type {
  BlacklistedProviders,
  MarketCapabilities,
  MerchantAddress,
  MerchantApp,
  MerchantPayout,
  MerchantPlan,
  MerchantUpdatedEvent,
  MerchantUpdatedPayload,
} from './merchant-updated.js'
export type { Beneficiary, CompanyAddress, IdDoc, OnboardingData } from './onboarding-data.js'
export { type Receive, type WebhookReceiver, webhookReceiver } from './receiver.js'
export type {
  WebhookContext,
  WebhookHandler,
  WebhookHandlers,
  WebhookReceiverEvent,
  WebhookReceiverOptions,
} from './receiver-options.js'
export type { RefusalCode } from './refusal.js'
export {
  type HmacSha256Options,
  hmacSha256,
  type StandardWebhooksOptions,
  standardWebhooks,
  type Verify,
  type VerifySignature,
} from './signature.js'
