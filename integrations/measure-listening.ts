// What listening costs: the CPU of a claim and its completion on memory, which awaits nothing.
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node'
import { createOperationEngine } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { instrument } from 'once-per-key/opentelemetry'

const OPERATIONS = 20_000
const ROUNDS = 9
const ANSWER = { status: 201, statusMessage: '', headers: [], body: Buffer.from('{"id":"po_7"}') }

/** Begins to listen, and returns what ends that. */
const LISTENERS: Readonly<Record<string, () => () => void>> = {
  nobody: () => () => {},
  'a subscriber of every channel': () => {
    const names = ['claim', 'command'].flatMap((about) =>
      ['start', 'end', 'asyncEnd'].map((phase) => `tracing:once-per-key:${about}:${phase}`),
    )
    const channels = [...names, 'once-per-key:event']
    let heard = 0
    const hear = () => void heard++
    for (const name of channels) subscribe(name, hear)
    return () => {
      for (const name of channels) unsubscribe(name, hear)
      if (heard < OPERATIONS) throw new Error(`Only ${heard} messages were heard.`)
    }
  },
  'once-per-key/opentelemetry, metrics and spans': () =>
    instrument({ meterProvider: new MeterProvider(), tracerProvider: new NodeTracerProvider() }),
}

async function microsOfOne(): Promise<number> {
  const engine = createOperationEngine({ store: new MemoryStore(), onEvent: () => {} })
  globalThis.gc?.()
  const from = process.cpuUsage()
  for (let i = 0; i < OPERATIONS; i++) {
    const claimed = await engine.claim({ scope: 'acme', key: `order-${i}`, fingerprint: 'f' })
    if (claimed.action !== 'execute') throw new Error('The claim was refused.')
    await claimed.run.complete(ANSWER)
  }
  const { user, system } = process.cpuUsage(from)
  return (user + system) / OPERATIONS
}

const measured = new Map<string, number[]>(Object.keys(LISTENERS).map((name) => [name, []]))
// In turns, so that what else the machine does falls on all alike; the first round warms up.
for (let round = -1; round < ROUNDS; round++) {
  for (const [name, listen] of Object.entries(LISTENERS)) {
    const stop = listen()
    const micros = await microsOfOne()
    stop()
    if (round >= 0) measured.get(name)?.push(micros)
  }
}
console.log(`CPU of a claim and its completion on memory, in µs: median of ${ROUNDS} rounds (least–most).`)
for (const [name, micros] of measured) {
  const sorted = micros.toSorted((a, b) => a - b)
  const [least, median, most] = [0, ROUNDS >> 1, ROUNDS - 1].map((at) => (sorted[at] as number).toFixed(1))
  console.log(`${`${median}`.padStart(6)} (${least}–${most})  ${name}`)
}
