import { type AppSettings, appSettings } from './app-settings.js'
import { eventSchemaOf, type WebhookEnvelope } from './envelope.js'
import { anything, finiteNumber, flag, listOf, sampled, text, tolerantObject } from './fields.js'
import { type OnboardingData, onboardingData } from './onboarding-data.js'

/** A merchant has been updated. */
export interface MerchantUpdatedEvent extends WebhookEnvelope {
  /** The kind of event. */
  readonly type: 'merchant_updated'
  /** The merchant as it is after the update. */
  readonly payload: MerchantUpdatedPayload
}

/**
 * A merchant as it is after an update. Which fields are required is not documented: each may be missing or null. A field
 * that is not listed here survives parsing.
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
  /** The name under which the merchant is registered. */
  readonly legalName?: string | null | undefined
  /** The name that payers see. */
  readonly displayName?: string | null | undefined
  /** The e-mail address of the merchant, as it was sent: the document calls it a string. */
  readonly email?: string | null | undefined
  /** Identifies the merchant's app. */
  readonly appId?: string | null | undefined
  /** The users of the account. */
  readonly users?: readonly string[] | null | undefined
  /** What the merchant pays. */
  readonly plan?: MerchantPlan | null | undefined
  /** What the merchant may do in each market. */
  readonly marketCapabilitySettings?: readonly MarketCapabilities[] | null | undefined
  /** The name that the application has internally. */
  readonly internalApplicationName?: string | null | undefined
  /** The telephone number. */
  readonly phone?: string | null | undefined
  /** The mobile telephone number. */
  readonly mobilePhone?: string | null | undefined
  /** Where the merchant is. */
  readonly address?: MerchantAddress | null | undefined
  /** What the merchant declared about its business. */
  readonly onboardingData?: OnboardingData | null | undefined
  /** The category of the business. */
  readonly category?: string | null | undefined
  /** The share of an amount that the application takes; the unit is not documented. */
  readonly applicationFeeShare?: number | null | undefined
  /** The fixed part of the fee that the application takes; the unit is not documented. */
  readonly applicationFixedFeeShare?: number | null | undefined
  /** Whether and how the merchant is paid out. */
  readonly payout?: MerchantPayout | null | undefined
  /** The apps of the merchant. */
  readonly apps?: readonly MerchantApp[] | null | undefined
  /** Whether it is an impact account. */
  readonly impactAccount?: boolean | null | undefined
  /** The merchant that this one is paired with; its type is not documented. */
  readonly pairedMerchantId?: unknown
  /** The banks that payers cannot choose; the type of an element is not documented. */
  readonly blacklistedBankIds?: readonly unknown[] | null | undefined
  /** The open-banking providers that payers cannot choose, market by market. */
  readonly blacklistedOpenBankingProvidersByMarket?: readonly BlacklistedProviders[] | null | undefined
  /** The name of the theme, such as `default`. */
  readonly themeName?: string | null | undefined
  /** Whether users sign in by single sign-on. */
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
  /** The kind of deal. One value is known; others may come. */
  readonly dealType?: 'S' | (string & {}) | null | undefined
  /** Whether the application's fee is given back with a refund. */
  readonly refundApplicationFee?: boolean | null | undefined
  /** The share of an amount that the application takes; the unit is not documented. */
  readonly applicationFeeShare?: number | null | undefined
  /** The fixed part of the fee that the application takes; the unit is not documented. */
  readonly applicationFixedFeeShare?: number | null | undefined
  /** How many transactions are free. */
  readonly amountFreeTransactions?: number | null | undefined
  /** What is invoiced each month; the unit is not documented. */
  readonly monthlyInvoiceTotal?: number | null | undefined
}

/** What a merchant may do in one market. */
export interface MarketCapabilities {
  /** The code of the country, such as two capital letters. */
  readonly market?: string | null | undefined
  /** What the merchant may do there. One value is known; others may come. */
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
  /** The code of the country. */
  readonly country?: string | null | undefined
  /** The first name of whoever is there. */
  readonly firstName?: string | null | undefined
  /** The last name of whoever is there. */
  readonly lastName?: string | null | undefined
}

/** Whether and how a merchant is paid out. */
export interface MerchantPayout {
  /** Whether the merchant was verified for payouts. */
  readonly verified?: boolean | null | undefined
  /** Whether the merchant is paid out. */
  readonly enabled?: boolean | null | undefined
  /** How far it is. One value is known; others may come. */
  readonly status?: 'pending' | (string & {}) | null | undefined
  /** Whether what payouts need is there. */
  readonly isPayoutsDataAvailable?: boolean | null | undefined
}

/** The open-banking providers that payers cannot choose in one market. */
export interface BlacklistedProviders {
  /** The code of the country. */
  readonly market?: string | null | undefined
  /** The names of the providers. */
  readonly blacklistedOpenBankingProviders?: readonly string[] | null | undefined
}

const app = tolerantObject({ ...appSettings, id: text, createdAt: anything, updatedAt: anything })

const plan = tolerantObject({
  dealType: sampled<'S'>(),
  refundApplicationFee: flag,
  applicationFeeShare: finiteNumber,
  applicationFixedFeeShare: finiteNumber,
  amountFreeTransactions: finiteNumber,
  monthlyInvoiceTotal: finiteNumber,
})

const marketCapabilities = tolerantObject({ market: text, capabilities: listOf(sampled<'ais'>()) })

const address = tolerantObject({
  line1: text,
  line2: text,
  city: text,
  zipCode: text,
  region: text,
  country: text,
  firstName: text,
  lastName: text,
})

const payout = tolerantObject({
  verified: flag,
  enabled: flag,
  status: sampled<'pending'>(),
  isPayoutsDataAvailable: flag,
})

const blacklistedProviders = tolerantObject({ market: text, blacklistedOpenBankingProviders: listOf(text) })

export const merchantUpdatedPayloadSchema = tolerantObject({
  ...appSettings,
  id: text,
  createdAt: anything,
  updatedAt: anything,
  deletedAt: anything,
  legalName: text,
  displayName: text,
  email: text,
  appId: text,
  users: listOf(text),
  plan,
  marketCapabilitySettings: listOf(marketCapabilities),
  internalApplicationName: text,
  phone: text,
  mobilePhone: text,
  address,
  onboardingData,
  category: text,
  applicationFeeShare: finiteNumber,
  applicationFixedFeeShare: finiteNumber,
  payout,
  apps: listOf(app),
  impactAccount: flag,
  pairedMerchantId: anything,
  blacklistedBankIds: listOf(anything),
  blacklistedOpenBankingProvidersByMarket: listOf(blacklistedProviders),
  themeName: text,
  ssoEnabled: flag,
})

export const merchantUpdatedEventSchema = eventSchemaOf('merchant_updated', merchantUpdatedPayloadSchema)
