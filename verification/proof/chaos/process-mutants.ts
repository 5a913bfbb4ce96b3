import type { Mutant } from '../mutants/mutant.js'

const planted: readonly Omit<Mutant, 'layer'>[] = [
  {
    name: 'a replay loses the headers of its answer',
    find: 'headers: answer.headers.concat([REPLAYED])',
    replace: 'headers: [REPLAYED]',
    check: 'S2',
  },
  {
    name: 'Redis gives a key away while its lease is live',
    find: 'if now < record.lease_until then return refuse(record) end',
    replace: '',
    check: 'S1',
  },
  {
    name: 'a success is sent before the store has confirmed it',
    find: "mustBeConfirmed }, { do: 'send complete', answer })",
    replace: `mustBeConfirmed }, ...(facts.attempt > 0 ? [{ do: 'tell', end: 'own' } as const] : []), { do: 'send complete', answer })`,
    check: 'S3',
  },
  {
    name: 'an owner that lost its lease sends its own answer',
    find: 'return this.#tell(explainLostRun(effect.record, this.#run.identity, this.#core.options))',
    replace: 'return this.#tell(SEND)',
    check: 'S3',
  },
  {
    name: 'a completed key is claimed again',
    find: `if record.state == 'completed' then
  return refuse(record)`,
    replace: `if record.state == 'completed' then
  return acquire(record.attempt + 1, false)`,
    check: 'S4',
  },
  {
    name: 'who takes over is told that nothing was before',
    find: 'return acquire(record.attempt + 1, true, handed_over(record.steps))',
    replace: 'return acquire(record.attempt + 1, false, handed_over(record.steps))',
    check: 'S5',
  },
  {
    name: 'a failure whose outcome is unknown counts as certain',
    find: 'this.#run.failure = effect.failure',
    replace: 'this.#run.failure = { ...effect.failure, uncertain: false }',
    check: 'S5',
    scale: 0.15,
  },
  {
    name: 'Redis completes for whoever asks',
    find: `  if record.token ~= token or record.state == 'failed' then return stale(record, fingerprint) end\n  if record.state == 'completed' then return OK end`,
    replace: `  if record.state == 'failed' then return stale(record, fingerprint) end\n  if record.state == 'completed' then return OK end`,
    check: 'S6',
  },
  {
    name: 'a failure takes the attempts with it',
    find: 'if not record.uncertain then return acquire(record.attempt + 1, false) end',
    replace: 'if not record.uncertain then return acquire(1, false) end',
    check: 'S6',
  },
  {
    name: 'an answer is stored with another body',
    find: "return body === null ? '' : encodeBytes(body)",
    replace: "return body === null ? '' : Buffer.from('{}')",
    check: 'S8',
  },
  {
    name: 'two scopes share their keys',
    find: 'encodeNamePart(scope)',
    replace: `''`,
    check: 'S9',
  },
  {
    name: 'another body gets the answer of the first',
    find: 'new Run(identity, this.#core,',
    replace: `new Run({ ...identity, fingerprint: 'f' }, this.#core,`,
    check: 'S9',
  },
  {
    name: 'a handler runs without a confirmed claim',
    find: `options.storeFailure === 'runUnprotected'`,
    replace: 'options.leaseMs > 0',
    check: 'S10',
  },
  {
    name: 'a disconnect releases the key',
    find: 'this.#stream?.onClientLeft()',
    replace: 'this.#stream?.onClientLeft()\n    void this.#run.fail()',
    check: 'S11',
  },
  {
    name: 'Redis hands over no steps',
    find: 'return acquire(record.attempt + 1, true, handed_over(record.steps))',
    replace: 'return acquire(record.attempt + 1, true)',
    check: 'S14',
  },
  {
    name: 'a result is never recorded',
    find: "const reply = await this.#send(label, 'done', kept, known)",
    replace:
      "const reply = kept === known.result ? await this.#send(label, 'done', kept, known) : ({ ok: true } as const)",
    check: 'S14',
  },
  {
    name: 'what a dead attempt has begun is called as new',
    find: "known.state === 'begun' ? 'unknown' : 'none'",
    replace: "known.state === 'begun' ? 'none' : 'none'",
    check: 'S14',
  },
  {
    name: 'a lease never lapses',
    find: 'if now < record.lease_until then',
    replace: 'if now then',
    check: 'L1',
    scale: 0.15,
  },
  {
    name: 'the client of an owner that lost its lease is forgotten',
    find: 'this.#binding.sendReplacement(this, settled)',
    replace: '',
    check: 'L2',
  },
  {
    name: 'a timer keeps the process alive',
    find: 'store.observe?.(heard, options.storeTimeoutMs)',
    replace: 'store.observe?.(heard, options.storeTimeoutMs)\n  setInterval(() => {}, 60_000)',
    check: 'L3',
  },
]

/** Faults that real processes show; chaos is a matter of chance, and these are found at nearly every seed. */
export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'chaos' }))
