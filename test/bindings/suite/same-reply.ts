import { VOLATILE } from '../../../src/testing/bindings/reply-laws.js'
import type { RawReply } from '../../support/raw-client.js'

/** What frameworks say of themselves, or add to what they send. */
const OF_FRAMEWORKS = new Set([...VOLATILE, 'x-powered-by', 'set-cookie', 'etag', 'vary'])

/** What two replies must share to be the same answer, sent by one framework, or by two. */
export function essenceOf(reply: RawReply, across: 'one framework' | 'two' = 'one framework'): unknown {
  const volatile = across === 'two' ? OF_FRAMEWORKS : VOLATILE
  const byName = new Map<string, string[]>()
  for (const [name, value] of reply.headers) {
    const lowerCase = name.toLowerCase()
    if (!volatile.has(lowerCase)) byName.set(lowerCase, [...(byName.get(lowerCase) ?? []), value])
  }
  // RFC 9110 §5.3: lines of one name are its values with commas between; Fetch has them so.
  const headers = [...byName].map(([name, values]) => `${name}: ${values.join(', ')}`).sort()
  return { status: reply.status, headers, body: reply.body.toString('latin1') }
}
