import { Buffer } from 'node:buffer'
import { standardWebhooks } from 'once-per-key/webhooks'
import { expect, test } from 'vitest'
import { mistakesOf } from '../support/mistakes-of.js'

test.each(['whsec_c2VjcmV0', 'AAAA', Buffer.alloc(23, 7).toString('base64')])(
  'a secret of fewer than 24 bytes is refused, and not shown: %s',
  (secret) => {
    const mistakes = mistakesOf(() => standardWebhooks({ secrets: [secret] }))
    expect(mistakes).toEqual([
      expect.stringMatching(/^secrets\[0\]: expected at least 24 bytes in base64.*; seen: \d+$/),
    ])
    expect(mistakes.join()).not.toContain(secret.replace('whsec_', ''))
  },
)

test.each([24, 64])('one of %i bytes is taken', (length) => {
  expect(mistakesOf(() => standardWebhooks({ secrets: [Buffer.alloc(length, 7).toString('base64')] }))).toEqual([])
})
