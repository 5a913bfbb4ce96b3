// What the compiler says of webhook events. `tsc` is the test: an expected error that does not come is one.
import type { z } from 'zod/v4'
import {
  isKnownEvent,
  type parseWebhookEvent,
  type UnknownEvent,
  type WebhookEvent,
  type webhookEventSchema,
} from '../../src/webhooks/events/event.js'
import type {
  MandateSetupStartedEvent,
  mandateSetupStartedEventSchema,
} from '../../src/webhooks/events/mandate-setup-started.js'
import type {
  MerchantUpdatedEvent,
  MerchantUpdatedPayload,
  merchantUpdatedEventSchema,
} from '../../src/webhooks/events/merchant-updated.js'

/** A type without the index signatures of open objects, and without `readonly`, at every level. */
type Plain<T> = T extends readonly (infer Element)[]
  ? Plain<Element>[]
  : T extends object
    ? { -readonly [Name in keyof T as string extends Name ? never : Name]: Plain<T[Name]> }
    : T

/** Whether two types are one, missing optional fields and all: to be assignable both ways is less. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false

// The interfaces are what the schemas put out.
true satisfies Same<Plain<z.output<typeof merchantUpdatedEventSchema>>, Plain<MerchantUpdatedEvent>>
true satisfies Same<Plain<z.output<typeof mandateSetupStartedEventSchema>>, Plain<MandateSetupStartedEvent>>
true satisfies Same<z.output<typeof webhookEventSchema>, WebhookEvent>

// The comparison sees a field that one side lacks, deep inside too, another type, and another optionality.
true satisfies Same<Plain<{ readonly a?: string; [name: string]: unknown }>, Plain<{ a?: string }>>
false satisfies Same<Plain<{ a?: string }>, Plain<{ a?: string; b?: number }>>
false satisfies Same<Plain<{ a: { b?: string }[] }>, Plain<{ a: { b?: string; c?: string }[] }>>
false satisfies Same<Plain<{ a?: string }>, Plain<{ a?: string | null }>>
false satisfies Same<Plain<{ a?: string }>, Plain<{ a: string }>>
false satisfies Same<Plain<{ a?: unknown }>, Plain<{ b?: unknown }>>
false satisfies Same<Plain<{ a?: 'init' | (string & {}) }>, Plain<{ a?: string }>>

// A `switch` on `type` narrows, and the compiler knows when an arm is missing.
export function subjectOf(event: WebhookEvent): unknown {
  switch (event.type) {
    case 'merchant_updated':
      event satisfies MerchantUpdatedEvent
      return event.payload.apps?.[0]?.notificationSettings?.webhookFailure?.emailNotification?.emails?.at(0)?.trim()
    case 'mandate_setup_started':
      event satisfies MandateSetupStartedEvent
      return event.payload.creditor?.address?.postalCode?.trim()
    case 'unknown':
      event satisfies UnknownEvent
      return [event.sentType.trim(), event.payload.anything]
    default:
      return event satisfies never
  }
}

export function incomplete(event: WebhookEvent): string {
  switch (event.type) {
    case 'merchant_updated':
      return event.id
    case 'unknown':
      return event.sentType
    default:
      // @ts-expect-error one arm is missing
      return event satisfies never
  }
}

export function known(event: WebhookEvent): string {
  // @ts-expect-error only an unknown event has it
  event.sentType
  if (!isKnownEvent(event)) return event.sentType
  event satisfies MerchantUpdatedEvent | MandateSetupStartedEvent
  // @ts-expect-error no known type
  if (event.type === 'merchant_update') return ''
  return event.type
}

// A typo does not compile, at any level.
export function typos(merchant: MerchantUpdatedPayload, event: WebhookEvent): unknown[] {
  return [
    // @ts-expect-error hasApiKey
    merchant.hasAPIKey,
    // @ts-expect-error legalName
    merchant.legalname,
    // @ts-expect-error kybStatus
    merchant.onboardingData?.kybstatus,
    // @ts-expect-error idDocs
    merchant.onboardingData?.beneficiaries?.[0]?.iddocs,
    // @ts-expect-error emails
    merchant.apps?.[0]?.notificationSettings?.webhookFailure?.emailNotification?.email,
    // @ts-expect-error payload
    event.payloads,
  ]
}

// An enumeration takes any string, and nothing else; timestamps of no documented type are unknown, not any.
export const merchant = {
  payout: { status: 'pending' },
  plan: { dealType: 'another' },
  marketCapabilitySettings: [{ market: 'DK', capabilities: ['ais', 'another'] }],
  createdAt: 1_767_225_600_000,
  hasApiKey: null,
} as const satisfies MerchantUpdatedPayload
// @ts-expect-error not a string
export const wrongStatus: MerchantUpdatedPayload = { payout: { status: 1 } }
// @ts-expect-error not a boolean
export const wrongFlag: MerchantUpdatedPayload = { hasApiKey: 'yes' }
// @ts-expect-error unknown until it is looked at
export const createdAt: string = ({} as MerchantUpdatedPayload).createdAt

// What is parsed is an event, not any.
true satisfies Same<ReturnType<typeof parseWebhookEvent>, WebhookEvent>
