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
export { looksLikeEmailAddress, type WebhookEnvelope } from './events/fields.js'
export type {
  MandateCreditor,
  MandateCreditorAddress,
  MandateSetupStartedEvent,
  MandateSetupStartedPayload,
  MandateSignature,
} from './events/mandate-setup-started.js'
export type {
  AppSettings,
  BlacklistedProviders,
  ClimateActionMode,
  EmailNotification,
  MarketCapabilities,
  MerchantAddress,
  MerchantApp,
  MerchantPayout,
  MerchantPlan,
  MerchantUpdatedEvent,
  MerchantUpdatedPayload,
  NotificationSettings,
  WebhookFailureNotification,
} from './events/merchant-updated.js'
export type { Beneficiary, CompanyAddress, IdDoc, OnboardingData } from './events/onboarding-data.js'
// In place of the receiver's two of the same names: here the payments service is the default.
export { type WebhookHandlers, type WebhookReceiverOptions, webhookReceiver } from './receiver/documented-receiver.js'
export * from './receiver/index.js'
