import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import type { Failover } from './ground.js'
import type { Command, KeyHistory } from './history.js'
import { lostRecords } from './losses.js'

const LEASE_MS = 1_200
const NEVER = Number.POSITIVE_INFINITY

/** As the journals of a run on a busy machine had it: the master died 10 ms after it had confirmed the completion. */
const FAILOVER = { diedAt: 14_630, replicaUntil: 15_500, lagsFrom: 14_400, had: () => true, kept: new Map() }

function command(name: Command['command'], token: string, sentAt: number, repliedAt: number): Command {
  const outcome = name === 'begin' ? ('acquired' as const) : ('ok' as const)
  const reply = repliedAt === NEVER ? null : { outcome }
  return { process: '0.0', command: name, token, uncertain: false, step: undefined, sentAt, repliedAt, reply }
}

function historyOf(...commands: Command[]): KeyHistory {
  const lists = { claims: [], runs: [], effects: [], told: [], steps: [], asked: [] }
  return { scope: 'acme', key: 'k', recordKey: 'once-per-key:acme:k', commands, ...lists }
}

/** A record in flight, as far as it is looked at. */
function inFlightOf(token: string): Buffer {
  return Buffer.concat([
    Buffer.from([1, 0x99, 0xa9]),
    Buffer.from(`in-flight ${token}`),
    Buffer.from([0xc2, 0xcf]),
    Buffer.alloc(8),
  ])
}

function isLost(history: KeyHistory, record: Buffer | undefined, failover: Partial<Failover> = {}): boolean {
  const kept = new Map(record === undefined ? [] : [[history.recordKey, record]])
  return lostRecords([history], [{ ...FAILOVER, ...failover, kept }], LEASE_MS).has(history)
}

const TAKEN_OVER = [
  command('begin', 'stale', 13_300, 13_316),
  command('begin', 'heir', 14_572, 14_584),
  command('complete', 'heir', 14_605, 14_620),
]

test('a completion is lost where the replica has the record of the owner before, whatever that one sends later', () => {
  const history = historyOf(...TAKEN_OVER, command('renew', 'stale', 15_557, NEVER))
  expect(isLost(history, inFlightOf('stale'))).toBe(true)
})

test('a completion is not lost where the replica has the record of an owner that claimed behind it', () => {
  const history = historyOf(...TAKEN_OVER, command('begin', 'next', 14_625, NEVER))
  expect(isLost(history, inFlightOf('next'))).toBe(false)
})

test('what had reached the replica is not lost', () => {
  expect(isLost(historyOf(...TAKEN_OVER), inFlightOf('stale'), { lagsFrom: 14_621 })).toBe(false)
})

test('what the dead master confirmed is lost, however late its reply is read', () => {
  const late = historyOf(command('begin', 'stale', 14_625, 15_400))
  expect(isLost(late, undefined)).toBe(true)
  expect(isLost(late, undefined, { replicaUntil: 15_300 })).toBe(false)
})
