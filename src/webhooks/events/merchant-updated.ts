import {
  anything,
  createEventSchema,
  createListSchema,
  createSampledEnum,
  createTolerantObject,
  finiteNumber,
  flag,
  text,
  type WebhookEnvelope,
} from './fields.js'
import { type OnboardingData, onboardingData } from './onboarding-data.js'

/** A merchant has been updated. */
export interface MerchantUpdatedEvent extends WebhookEnvelope {
  /** The kind of event. */
  readonly type: 'merchant_updated'
  /** The merchant as it is after the update. */
  readonly payload: MerchantUpdatedPayload
}

/**
 * A merchant after an update. Which fields are required is not documented: each may be missing or null. Fields that are
 * not listed here survive parsing.
 */
export interface MerchantUpdatedPayload extends AppSettings {
  /** Identifies the merchant. */
  readonly id?: string | null | undefined
  /** When the merchant was created; the format of the timestamp is not documented. */
  readonly createdAt?: unknown
  /** When the merchant was last updated; the format of the timestamp is not documented. */
  readonly updatedAt?: unknown
  /** When the merchant was deleted; the format of the timestamp is not documented. */
  readonly deletedAt?: unknown
  /** The registered name of the merchant. */
  readonly legalName?: string | null | undefined
  /** The name shown to payers. */
  readonly displayName?: string | null | undefined
  /** The merchant's e-mail address as sent; documented as a plain string. */
  readonly email?: string | null | undefined
  /** Identifies the merchant's app. */
  readonly appId?: string | null | undefined
  /** The users of the account. */
  readonly users?: readonly string[] | null | undefined
  /** What the merchant pays. */
  readonly plan?: MerchantPlan | null | undefined
  /** What the merchant may do in each market. */
  readonly marketCapabilitySettings?: readonly MarketCapabilities[] | null | undefined
  /** The internal name of the application. */
  readonly internalApplicationName?: string | null | undefined
  /** The telephone number. */
  readonly phone?: string | null | undefined
  /** The mobile telephone number. */
  readonly mobilePhone?: string | null | undefined
  /** The merchant's address. */
  readonly address?: MerchantAddress | null | undefined
  /** What the merchant declared about its business. */
  readonly onboardingData?: OnboardingData | null | undefined
  /** The category of the business. */
  readonly category?: string | null | undefined
  /** The share of an amount that the application takes; the unit is not documented. */
  readonly applicationFeeShare?: number | null | undefined
  /** The fixed part of the fee that the application takes; the unit is not documented. */
  readonly applicationFixedFeeShare?: number | null | undefined
  /** Whether and how the merchant receives payouts. */
  readonly payout?: MerchantPayout | null | undefined
  /** The apps of the merchant. */
  readonly apps?: readonly MerchantApp[] | null | undefined
  /** Whether this is an impact account. */
  readonly impactAccount?: boolean | null | undefined
  /** The merchant that this one is paired with; its type is not documented. */
  readonly pairedMerchantId?: unknown
  /** The banks that payers cannot choose; the element type is not documented. */
  readonly blacklistedBankIds?: readonly unknown[] | null | undefined
  /** The open-banking providers that payers cannot choose, by market. */
  readonly blacklistedOpenBankingProvidersByMarket?: readonly BlacklistedProviders[] | null | undefined
  /** The name of the theme, for example `default`. */
  readonly themeName?: string | null | undefined
  /** Whether users log in with single sign-on. */
  readonly ssoEnabled?: boolean | null | undefined
}

/** An app of a merchant. */
export interface MerchantApp extends AppSettings {
  /** Identifies the app. */
  readonly id?: string | null | undefined
  /** When the app was created; the format of the timestamp is not documented. */
  readonly createdAt?: unknown
  /** When the app was last updated; the format of the timestamp is not documented. */
  readonly updatedAt?: unknown
}

/** What a merchant pays. */
export interface MerchantPlan {
  /** The kind of deal. One value is known; others may be added. */
  readonly dealType?: 'S' | (string & {}) | null | undefined
  /** Whether the application's fee is refunded with the payment. */
  readonly refundApplicationFee?: boolean | null | undefined
  /** The share of an amount that the application takes; the unit is not documented. */
  readonly applicationFeeShare?: number | null | undefined
  /** The fixed part of the fee that the application takes; the unit is not documented. */
  readonly applicationFixedFeeShare?: number | null | undefined
  /** The number of free transactions. */
  readonly amountFreeTransactions?: number | null | undefined
  /** The total that is invoiced per month; the unit is not documented. */
  readonly monthlyInvoiceTotal?: number | null | undefined
}

/** What a merchant may do in one market. */
export interface MarketCapabilities {
  /** The country code, for example two capital letters. */
  readonly market?: string | null | undefined
  /** The permitted capabilities. One value is known; others may be added. */
  readonly capabilities?: readonly ('ais' | (string & {}))[] | null | undefined
}

/** The address of a merchant. */
export interface MerchantAddress {
  /** The first line. */
  readonly line1?: string | null | undefined
  /** The second line. */
  readonly line2?: string | null | undefined
  /** The city. */
  readonly city?: string | null | undefined
  /** The postal code. */
  readonly zipCode?: string | null | undefined
  /** The region. */
  readonly region?: string | null | undefined
  /** The country code. */
  readonly country?: string | null | undefined
  /** The first name of the contact. */
  readonly firstName?: string | null | undefined
  /** The last name of the contact. */
  readonly lastName?: string | null | undefined
}

/** Whether and how a merchant receives payouts. */
export interface MerchantPayout {
  /** Whether the merchant was verified for payouts. */
  readonly verified?: boolean | null | undefined
  /** Whether payouts are enabled. */
  readonly enabled?: boolean | null | undefined
  /** The status of payouts. One value is known; others may be added. */
  readonly status?: 'pending' | (string & {}) | null | undefined
  /** Whether the data that payouts require is complete. */
  readonly isPayoutsDataAvailable?: boolean | null | undefined
}

/** The open-banking providers that payers cannot choose in one market. */
export interface BlacklistedProviders {
  /** The country code. */
  readonly market?: string | null | undefined
  /** The names of the providers. */
  readonly blacklistedOpenBankingProviders?: readonly string[] | null | undefined
}

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

const climateActionMode = createTolerantObject({ type: createSampledEnum<'transaction'>(), amount: finiteNumber })

const notificationSettings = createTolerantObject({
  webhookFailure: createTolerantObject({
    emailNotification: createTolerantObject({ active: flag, emails: createListSchema(text) }),
  }),
})

/** The fields of AppSettings. */
const appSettings = {
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
  impactOffsetProjects: createListSchema(anything),
  notificationSettings,
  manuallyApproved: flag,
}

const app = createTolerantObject({ ...appSettings, id: text, createdAt: anything, updatedAt: anything })

const plan = createTolerantObject({
  dealType: createSampledEnum<'S'>(),
  refundApplicationFee: flag,
  applicationFeeShare: finiteNumber,
  applicationFixedFeeShare: finiteNumber,
  amountFreeTransactions: finiteNumber,
  monthlyInvoiceTotal: finiteNumber,
})

const marketCapabilities = createTolerantObject({
  market: text,
  capabilities: createListSchema(createSampledEnum<'ais'>()),
})

const address = createTolerantObject({
  line1: text,
  line2: text,
  city: text,
  zipCode: text,
  region: text,
  country: text,
  firstName: text,
  lastName: text,
})

const payout = createTolerantObject({
  verified: flag,
  enabled: flag,
  status: createSampledEnum<'pending'>(),
  isPayoutsDataAvailable: flag,
})

const blacklistedProviders = createTolerantObject({
  market: text,
  blacklistedOpenBankingProviders: createListSchema(text),
})

const merchantUpdatedPayloadSchema = createTolerantObject({
  ...appSettings,
  id: text,
  createdAt: anything,
  updatedAt: anything,
  deletedAt: anything,
  legalName: text,
  displayName: text,
  email: text,
  appId: text,
  users: createListSchema(text),
  plan,
  marketCapabilitySettings: createListSchema(marketCapabilities),
  internalApplicationName: text,
  phone: text,
  mobilePhone: text,
  address,
  onboardingData,
  category: text,
  applicationFeeShare: finiteNumber,
  applicationFixedFeeShare: finiteNumber,
  payout,
  apps: createListSchema(app),
  impactAccount: flag,
  pairedMerchantId: anything,
  blacklistedBankIds: createListSchema(anything),
  blacklistedOpenBankingProvidersByMarket: createListSchema(blacklistedProviders),
  themeName: text,
  ssoEnabled: flag,
})

export const merchantUpdatedEventSchema = createEventSchema('merchant_updated', merchantUpdatedPayloadSchema)
