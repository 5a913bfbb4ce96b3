import type { Hearing, OwnersCommand, OwnersReply, SentOperation, Store } from 'once-per-key/core'
import { describe, expect, test } from 'vitest'
import { mapStore } from '../support/map-store.js'
import { type Open, verdictOn } from './verdict.js'

// The engine uses `send` in place of the four methods. The laws tried the methods alone.

type Read = (operation: SentOperation, command: OwnersCommand) => unknown

/** A store whose `send` does what its methods do, with what `read` finds in the operation. */
function sending(now: () => number, read: Read = readRight, isLate = false): Store {
  const store = mapStore(now)
  return {
    ...store,
    send<Name extends OwnersCommand>(command: Name, operation: SentOperation, hearing: Hearing<OwnersReply[Name]>) {
      const { recordKey } = operation
      const inTime = read(operation, command)
      const sent = Promise.resolve().then(() =>
        store[command](recordKey, (isLate ? read(operation, command) : inTime) as never),
      )
      void sent.then(
        (reply) => hearing.heard(reply as OwnersReply[Name]),
        (error) => hearing.failed(error),
      )
    },
  }
}

function readRight({ terms, failure, ...own }: SentOperation, command: OwnersCommand) {
  const retentionMs = command === 'complete' ? terms.retentionMs : terms.unknownRetentionMs
  return { ...own, ...terms, retentionMs, uncertain: failure?.uncertain ?? own.uncertain }
}

async function brokenBy(open: Open): Promise<string[]> {
  const { broken } = await verdictOn(open, { sends: true, stepped: true })
  return [...broken.keys()]
}

test('a store whose send is right keeps every law twice', async () => {
  expect(await brokenBy((now) => sending(now))).toEqual([])
})

describe('storeLaws finds out a store whose send', () => {
  test.each<[mistake: string, law: string, open: (now: () => number) => Store]>([
    ['does nothing right', 'begin (none) by another token', (now) => ({ ...mapStore(now), send: confirms })],
    [
      'keeps an answer for the retention of an unknown outcome',
      'retention: a completed record is kept until its retention ends',
      (now) =>
        sending(now, (sent, command) => ({ ...readRight(sent, command), retentionMs: sent.terms.unknownRetentionMs })),
    ],
    [
      'takes the uncertainty of the claim for that of the failure',
      'release as uncertain (own, in-flight, lease live): ok',
      (now) => sending(now, (sent, command) => ({ ...readRight(sent, command), uncertain: sent.uncertain })),
    ],
    [
      'reads the operation after it has returned',
      'begin (none) by another token',
      (now) => sending(now, readRight, true),
    ],
  ])('%s', async (_, law, open) => {
    const broken = await brokenBy(open)
    expect(broken).toContainEqual(expect.stringMatching(/ \(by send\)$/))
    expect(broken.filter((name) => name.startsWith(law) && name.endsWith('(by send)'))).not.toEqual([])
    expect(broken.filter((name) => !name.endsWith('(by send)'))).toEqual([])
  })
})

function confirms(_command: unknown, _operation: unknown, hearing: { heard(reply: never): void }): void {
  hearing.heard({ ok: true } as never)
}
