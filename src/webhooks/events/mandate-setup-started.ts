import { anything, createEventSchema, createTolerantObject, text, type WebhookEnvelope } from './fields.js'

/** A mandate setup has been started. */
export interface MandateSetupStartedEvent extends WebhookEnvelope {
  /** The kind of event. */
  readonly type: 'mandate_setup_started'
  /** The setup that was started. */
  readonly payload: MandateSetupStartedPayload
}

/**
 * The setup of a mandate. Which fields are required is not documented: each may be missing or null. Fields that are not
 * listed here survive parsing.
 */
export interface MandateSetupStartedPayload {
  /** Identifies what the mandate refers to. */
  readonly referenceId?: string | null | undefined
  /** The human-readable reference of the mandate. */
  readonly reference?: string | null | undefined
  /** The e-mail address for notifying the user, as sent: see `looksLikeEmailAddress`. */
  readonly userNotificationEmail?: string | null | undefined
  /** How the user signed the mandate. */
  readonly signature?: MandateSignature | null | undefined
  /** Who may collect payments under the mandate. */
  readonly creditor?: MandateCreditor | null | undefined
}

/** How a mandate was signed. */
export interface MandateSignature {
  /** The IP address from which the user signed. */
  readonly ip?: string | null | undefined
  /** When the user signed; the format of the timestamp is not documented. */
  readonly signedAt?: unknown
  /** The token of the signature. */
  readonly token?: string | null | undefined
}

/** Who may collect payments under a mandate. */
export interface MandateCreditor {
  /** Identifies the creditor. */
  readonly id?: string | null | undefined
  /** The name of the creditor. */
  readonly name?: string | null | undefined
  /** The creditor's address. */
  readonly address?: MandateCreditorAddress | null | undefined
}

/** The postal address of a creditor. */
export interface MandateCreditorAddress {
  /** The street and building number. */
  readonly street?: string | null | undefined
  /** The city. */
  readonly city?: string | null | undefined
  /** The postal code. */
  readonly postalCode?: string | null | undefined
  /** The country. */
  readonly country?: string | null | undefined
}

const signature = createTolerantObject({ ip: text, signedAt: anything, token: text })

const address = createTolerantObject({ street: text, city: text, postalCode: text, country: text })

const creditor = createTolerantObject({ id: text, name: text, address })

const mandateSetupStartedPayloadSchema = createTolerantObject({
  referenceId: text,
  reference: text,
  userNotificationEmail: text,
  signature,
  creditor,
})

export const mandateSetupStartedEventSchema = createEventSchema(
  'mandate_setup_started',
  mandateSetupStartedPayloadSchema,
)
