/** The part before the last `@`: either quoted, or without white space and without RFC 5322's specials. */
const LOCAL_PART = String.raw`(?:"[^"\p{Cc}]+"|[^\s\p{Cc}()<>\[\]:;@\\,"]+)`
/** The part after it: labels in any script, also without a dot; or an address literal, for example `[192.0.2.1]`. */
const DOMAIN = String.raw`(?:\[[^\s\p{Cc}\[\]@]+\]|[^\s\p{Cc}()<>\[\]:;@\\,".]+(?:\.[^\s\p{Cc}()<>\[\]:;@\\,".]+)*)`
const EMAIL_ADDRESS = new RegExp(`^${LOCAL_PART}@${DOMAIN}$`, 'u')

/**
 * Whether a text looks like one bare e-mail address, without a display name. Call it before you write to an address
 * from an event. Parsing does not refuse an event because of its address: the event would be lost.
 *
 * Lenient: `o!brien@example.com`, `root@localhost` and `用户@例子.公司` are valid. It does not check that the mailbox exists.
 *
 * @example if (looksLikeEmailAddress(payload.userNotificationEmail)) await remind(payload.userNotificationEmail)
 */
export function looksLikeEmailAddress(text: string | null | undefined): text is string {
  return typeof text === 'string' && EMAIL_ADDRESS.test(text)
}
