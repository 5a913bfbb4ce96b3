import { anything, finiteNumber, flag, listOf, sampled, text, tolerantObject } from './fields.js'

/** The settings that a merchant and each of its apps share. */
export interface AppSettings {
  /** The platform on which the shop runs. The values are not documented. */
  readonly platformType?: string | null | undefined
  /** Whether an API key has been issued. */
  readonly hasApiKey?: boolean | null | undefined
  /** The URL of the website. */
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
  /** The default subscription to webhook events; its type is not documented. */
  readonly defaultWebhookSubscription?: unknown
  /** The climate project that receives the offsets. */
  readonly offsetProject?: string | null | undefined
  /** The URL of the privacy policy. */
  readonly privacyUrl?: string | null | undefined
  /** The URL of the terms of service. */
  readonly tosUrl?: string | null | undefined
  /** Whether the shop offers trees with a button only. */
  readonly buttonOnlyShopTrees?: boolean | null | undefined
  /** How climate action is paid for. */
  readonly climateActionMode?: ClimateActionMode | null | undefined
  /** The projects that offset the impact; the element type is not documented. */
  readonly impactOffsetProjects?: readonly unknown[] | null | undefined
  /** Who is notified of what. */
  readonly notificationSettings?: NotificationSettings | null | undefined
  /** Whether a person approved it. */
  readonly manuallyApproved?: boolean | null | undefined
}

/** How climate action is paid for. */
export interface ClimateActionMode {
  /** The unit that is counted. One value is known; others may be added. */
  readonly type?: 'transaction' | (string & {}) | null | undefined
  /** How much; the unit is not documented. */
  readonly amount?: number | null | undefined
}

/** Who is notified of what. */
export interface NotificationSettings {
  /** Notification that a webhook event could not be delivered. */
  readonly webhookFailure?: WebhookFailureNotification | null | undefined
}

/** How a failed webhook delivery is reported. */
export interface WebhookFailureNotification {
  /** By e-mail. */
  readonly emailNotification?: EmailNotification | null | undefined
}

/** A notification by e-mail. */
export interface EmailNotification {
  /** Whether it is sent. */
  readonly active?: boolean | null | undefined
  /** The recipients' e-mail addresses as sent: see `looksLikeEmailAddress`. */
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
