/** What stands in front of the last `@`: anything, in quotes; else no white space and none of RFC 5322's specials. */
const LOCAL_PART = String.raw`(?:"[^"\p{Cc}]+"|[^\s\p{Cc}()<>\[\]:;@\\,"]+)`
/** What stands behind it: labels in any script, without a dot too; or an address literal such as `[192.0.2.1]`. */
const DOMAIN = String.raw`(?:\[[^\s\p{Cc}\[\]@]+\]|[^\s\p{Cc}()<>\[\]:;@\\,".]+(?:\.[^\s\p{Cc}()<>\[\]:;@\\,".]+)*)`
const EMAIL_ADDRESS = new RegExp(`^${LOCAL_PART}@${DOMAIN}$`, 'u')

/**
 * Whether a text looks like one bare e-mail address, without a display name: ask it before you write to an address that an
 * event brought. An event is not refused for it, since what is refused is lost, and an odd address is the least of an event.
 *
 * Lenient: `o!brien@example.com`, `root@localhost` and `用户@例子.公司` are addresses. It says nothing of whether anybody
 * reads what is sent there.
 *
 * @example if (looksLikeEmailAddress(payload.userNotificationEmail)) await remind(payload.userNotificationEmail)
 */
export function looksLikeEmailAddress(text: string | null | undefined): text is string {
  return typeof text === 'string' && EMAIL_ADDRESS.test(text)
}
