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
// In place of the receiver's two of the same names: here the payments service is the default.
export { type WebhookHandlers, type WebhookReceiverOptions, webhookReceiver } from './receiver/documented-receiver.js'
export * from './receiver/index.js'
