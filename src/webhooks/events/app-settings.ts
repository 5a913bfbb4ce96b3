import { anything, finiteNumber, flag, listOf, sampled, text, tolerantObject } from './fields.js'

/** What a merchant and each of its apps have in common. */
export interface AppSettings {
  /** The platform on which the shop runs. The values are not documented. */
  readonly platformType?: string | null | undefined
  /** Whether an API key has been issued. */
  readonly hasApiKey?: boolean | null | undefined
  /** The address of the website. */
  readonly websiteUrl?: string | null | undefined
  /** The logo of the shop. */
  readonly shopLogo?: string | null | undefined
  /** The URL that is called with a quote. */
  readonly quoteCallbackUrl?: string | null | undefined
  /** The URL that is called on completion. */
  readonly completeCallbackUrl?: string | null | undefined
  /** The URL that is called after a success. */
  readonly successCallbackUrl?: string | null | undefined
  /** The URL that is called after an error. */
  readonly errorCallbackUrl?: string | null | undefined
  /** The URL to which webhook events are sent. */
  readonly webhookUrl?: string | null | undefined
  /** The subscription to webhook events that holds by default; its type is not documented. */
  readonly defaultWebhookSubscription?: unknown
  /** The climate project that offsets go to. */
  readonly offsetProject?: string | null | undefined
  /** The URL of the privacy policy. */
  readonly privacyUrl?: string | null | undefined
  /** The URL of the terms of service. */
  readonly tosUrl?: string | null | undefined
  /** Whether the shop offers trees by a button alone. */
  readonly buttonOnlyShopTrees?: boolean | null | undefined
  /** How climate action is paid for. */
  readonly climateActionMode?: ClimateActionMode | null | undefined
  /** The projects that offset the impact; the type of an element is not documented. */
  readonly impactOffsetProjects?: readonly unknown[] | null | undefined
  /** Who is told of what. */
  readonly notificationSettings?: NotificationSettings | null | undefined
  /** Whether a person has approved it. */
  readonly manuallyApproved?: boolean | null | undefined
}

/** How climate action is paid for. */
export interface ClimateActionMode {
  /** What it is counted by. One value is known; others may come. */
  readonly type?: 'transaction' | (string & {}) | null | undefined
  /** How much; the unit is not documented. */
  readonly amount?: number | null | undefined
}

/** Who is told of what. */
export interface NotificationSettings {
  /** When a webhook event could not be delivered. */
  readonly webhookFailure?: WebhookFailureNotification | null | undefined
}

/** How a webhook event that could not be delivered is reported. */
export interface WebhookFailureNotification {
  /** By e-mail. */
  readonly emailNotification?: EmailNotification | null | undefined
}

/** A notification by e-mail. */
export interface EmailNotification {
  /** Whether it is sent. */
  readonly active?: boolean | null | undefined
  /** The e-mail addresses to which it is sent, as they were sent: see `looksLikeEmailAddress`. */
  readonly emails?: readonly string[] | null | undefined
}

const climateActionMode = tolerantObject({ type: sampled<'transaction'>(), amount: finiteNumber })

const notificationSettings = tolerantObject({
  webhookFailure: tolerantObject({
    emailNotification: tolerantObject({ active: flag, emails: listOf(text) }),
  }),
})

/** The fields of AppSettings. */
export const appSettings = {
  platformType: text,
  hasApiKey: flag,
  websiteUrl: text,
  shopLogo: text,
  quoteCallbackUrl: text,
  completeCallbackUrl: text,
  successCallbackUrl: text,
  errorCallbackUrl: text,
  webhookUrl: text,
  defaultWebhookSubscription: anything,
  offsetProject: text,
  privacyUrl: text,
  tosUrl: text,
  buttonOnlyShopTrees: flag,
  climateActionMode,
  impactOffsetProjects: listOf(anything),
  notificationSettings,
  manuallyApproved: flag,
}
