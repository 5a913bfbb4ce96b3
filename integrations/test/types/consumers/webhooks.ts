// Webhook events, with zod and without: the interfaces are real types either way.
import {
  type AppSettings,
  type Beneficiary,
  type DeliverySummary,
  hmacSha256,
  isKnownEvent,
  type KnownWebhookEvent,
  looksLikeEmailAddress,
  type MandateSetupStartedEvent,
  type MandateSetupStartedPayload,
  type MerchantApp,
  type MerchantUpdatedEvent,
  type MerchantUpdatedPayload,
  type OnboardingData,
  type ParsedEvent,
  type ParsedReceiverOptions,
  parseWebhookEvent,
  standardWebhooks,
  type UnknownEvent,
  type WebhookContext,
  type WebhookEnvelope,
  type WebhookEvent,
  WebhookEventError,
  type WebhookEventType,
  type WebhookHandler,
  type WebhookReceiver,
  type WebhookReceiverEvent,
  type WebhookReceiverOptions,
  type webhookEventTypes,
  webhookReceiver,
} from 'once-per-key/webhooks'

/** Nothing but `any` is both. */
type IsAny<T> = 0 extends 1 & T ? true : false

true satisfies IsAny<ReturnType<typeof JSON.parse>>
false satisfies IsAny<unknown>

false satisfies IsAny<WebhookEvent>
false satisfies IsAny<KnownWebhookEvent>
false satisfies IsAny<UnknownEvent>
false satisfies IsAny<WebhookEnvelope>
false satisfies IsAny<WebhookEventType>
false satisfies IsAny<MerchantUpdatedEvent>
false satisfies IsAny<MerchantUpdatedPayload>
false satisfies IsAny<MerchantApp>
false satisfies IsAny<AppSettings>
false satisfies IsAny<OnboardingData>
false satisfies IsAny<Beneficiary>
false satisfies IsAny<MandateSetupStartedEvent>
false satisfies IsAny<MandateSetupStartedPayload>
false satisfies IsAny<MerchantUpdatedPayload['hasApiKey']>
false satisfies IsAny<MerchantUpdatedPayload['apps']>
false satisfies IsAny<MerchantUpdatedPayload['onboardingData']>
false satisfies IsAny<MandateSetupStartedPayload['creditor']>
false satisfies IsAny<ReturnType<typeof parseWebhookEvent>>
false satisfies IsAny<WebhookReceiverOptions>
false satisfies IsAny<WebhookReceiverOptions['store']>
false satisfies IsAny<WebhookReceiverEvent>
false satisfies IsAny<WebhookReceiver>
false satisfies IsAny<WebhookContext>
false satisfies IsAny<Parameters<WebhookHandler<WebhookEvent>>[0]>
false satisfies IsAny<typeof webhookEventTypes>
false satisfies IsAny<DeliverySummary>
false satisfies IsAny<ParsedEvent>
false satisfies IsAny<ParsedReceiverOptions<ParsedEvent>>

export function subjectOf(sent: unknown): string | null | undefined {
  const event = parseWebhookEvent(sent)
  switch (event.type) {
    case 'merchant_updated':
      // @ts-expect-error hasApiKey
      event.payload.hasAPIKey
      // @ts-expect-error kybStatus
      event.payload.onboardingData?.kybstatus
      return event.payload.apps?.[0]?.notificationSettings?.webhookFailure?.emailNotification?.emails?.[0]
    case 'mandate_setup_started':
      // @ts-expect-error postalCode
      event.payload.creditor?.address?.postcode
      return event.payload.creditor?.address?.postalCode
    case 'unknown':
      return event.sentType
    default:
      return event satisfies never
  }
}

export const known = (event: WebhookEvent): WebhookEventType | null => (isKnownEvent(event) ? event.type : null)
export const problems = ({ issues }: WebhookEventError): string[] => issues.map(({ path }) => path)
export const thrown: Error = new WebhookEventError([])

export declare const store: WebhookReceiverOptions['store']
const verify = standardWebhooks({ secrets: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'] })
export const receiver: WebhookReceiver = webhookReceiver({
  store,
  source: 'payments',
  verify,
  on: {
    async merchant_updated({ payload }, { attempt, deriveKey, signal }) {
      // @ts-expect-error displayName
      payload.displayname
      return [payload.displayName?.trim(), attempt.toFixed(), deriveKey('rename').length, signal.aborted]
    },
  },
  onUnknownEvent: ({ sentType }) => sentType.trim(),
  onEvent: (event) =>
    event.type === 'rejected' ? [event.code.trim(), event.eventId?.trim(), event.issues?.length] : [],
})
// @ts-expect-error no such type of event
webhookReceiver({ store, source: 'payments', verify, on: { merchant_update: () => {} } })
// @ts-expect-error whether deliveries are signed must be said
webhookReceiver({ store, source: 'payments', on: {} })
// @ts-expect-error no such encoding
hmacSha256({ header: 'X-Signature', secrets: ['secret'], encoding: 'base32' })

// Any sender's events: handlers are typed by what `parse` answers.
type Sent =
  | { id: string; type: 'invoice.paid'; payload: { amount: number } }
  | { id: string; type: 'ping'; payload: null }
export const ofAnySender: WebhookReceiver = webhookReceiver({
  store,
  source: 'billing',
  verify,
  parse: (raw, headers): Sent => ({ ...JSON.parse(raw.toString()), id: headers['webhook-id'] }),
  on: {
    'invoice.paid': async ({ payload }, { source }) => [payload.amount.toFixed(), source.trim()],
    // @ts-expect-error a ping has no payload
    ping: ({ payload }) => payload.amount,
  },
  onUnknownEvent: ({ type }) => type.trim(),
})
webhookReceiver({
  store,
  source: 'billing',
  verify,
  parse: async (raw) => ({ id: '1', type: raw.toString(), payload: raw.length }),
  on: { 'any/type': ({ payload }) => payload.toFixed() },
})
// @ts-expect-error an event without an id
webhookReceiver({ store, source: 'billing', verify, parse: () => ({ type: 'ping', payload: null }), on: {} })
export const address = (text: string | null | undefined): string => (looksLikeEmailAddress(text) ? text : '')
