import { eventSchemaOf, type WebhookEnvelope } from './envelope.js'
import { anything, text, tolerantObject } from './fields.js'

/** A mandate setup has been started. */
export interface MandateSetupStartedEvent extends WebhookEnvelope {
  /** The kind of event. */
  readonly type: 'mandate_setup_started'
  /** The setup that has been started. */
  readonly payload: MandateSetupStartedPayload
}

/**
 * The setup of a mandate. Which fields are required is not documented: each may be missing or null. A field that is not
 * listed here survives parsing.
 */
export interface MandateSetupStartedPayload {
  /** Identifies what the mandate refers to. */
  readonly referenceId?: string | null | undefined
  /** The reference of the mandate, as people read it. */
  readonly reference?: string | null | undefined
  /** The e-mail address at which the user is notified, as it was sent: see `looksLikeEmailAddress`. */
  readonly userNotificationEmail?: string | null | undefined
  /** How the user signed the mandate. */
  readonly signature?: MandateSignature | null | undefined
  /** Who may collect under the mandate. */
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

/** Who may collect under a mandate. */
export interface MandateCreditor {
  /** Identifies the creditor. */
  readonly id?: string | null | undefined
  /** The name of the creditor. */
  readonly name?: string | null | undefined
  /** Where the creditor is. */
  readonly address?: MandateCreditorAddress | null | undefined
}

/** The postal address of a creditor. */
export interface MandateCreditorAddress {
  /** The street, with the number of the building. */
  readonly street?: string | null | undefined
  /** The city. */
  readonly city?: string | null | undefined
  /** The postal code. */
  readonly postalCode?: string | null | undefined
  /** The country. */
  readonly country?: string | null | undefined
}

const signature = tolerantObject({ ip: text, signedAt: anything, token: text })

const address = tolerantObject({ street: text, city: text, postalCode: text, country: text })

const creditor = tolerantObject({ id: text, name: text, address })

export const mandateSetupStartedPayloadSchema = tolerantObject({
  referenceId: text,
  reference: text,
  userNotificationEmail: text,
  signature,
  creditor,
})

export const mandateSetupStartedEventSchema = eventSchemaOf('mandate_setup_started', mandateSetupStartedPayloadSchema)
