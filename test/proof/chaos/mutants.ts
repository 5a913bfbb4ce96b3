import type { Mutant } from '../mutants/mutant.js'

const SCRIPTS = 'adapters/redis/scripts.ts'
const STORE = 'adapters/redis/redis-store.ts'
const ENGINE = 'src/core/engine.ts'
const EXECUTION = 'src/core/execution.ts'

const planted: readonly Omit<Mutant, 'layer'>[] = [
  {
    name: 'a replay loses the headers of its answer',
    file: 'src/core/answer.ts',
    find: 'headers: [...answer.headers, REPLAYED]',
    replace: 'headers: [REPLAYED]',
    check: 'S2',
  },
  {
    name: 'Redis gives a key away while its lease is live',
    file: SCRIPTS,
    find: 'if now < record.lease_until then return refuse(record) end',
    replace: '',
    check: 'S1',
  },
  {
    name: 'a success is sent before the store has confirmed it',
    file: EXECUTION,
    find: `const done = await ask('complete', identity, asked, storeTimeoutMs, emit)
    if (done !== null) return close(done, completed, sentUnheld)`,
    replace: `const confirmed = ask('complete', identity, asked, storeTimeoutMs, emit)
    void confirmed.then((done) => done && close(done, completed))
    if (attempt > 0) return { action: 'send' }`,
    check: 'S3',
  },
  {
    name: 'an owner that lost its lease sends its own answer',
    file: EXECUTION,
    find: 'return verdictAfterLoss(done.record, identity, options)',
    replace: `return { action: 'send' }`,
    check: 'S3',
  },
  {
    name: 'a completed key is claimed again',
    file: SCRIPTS,
    find: `if record.state == 'completed' then
  return refuse(record)`,
    replace: `if record.state == 'completed' then
  return acquire(record.attempt + 1, false)`,
    check: 'S4',
  },
  {
    name: 'who takes over is told that nothing was before',
    file: SCRIPTS,
    find: 'return acquire(record.attempt + 1, true)',
    replace: 'return acquire(record.attempt + 1, false)',
    check: 'S5',
  },
  {
    name: 'a failure behind a possible effect counts as certain',
    file: EXECUTION,
    find: 'const uncertain = own.uncertain || mayHaveHadEffect',
    replace: 'const uncertain = own.uncertain',
    check: 'S5',
    scale: 0.15,
  },
  {
    name: 'Redis completes for whoever asks',
    file: SCRIPTS,
    find: `if record.token ~= token or record.state == 'failed' then return stale(record) end`,
    replace: `if record.state == 'failed' then return stale(record) end`,
    check: 'S6',
  },
  {
    name: 'a failure takes the attempts with it',
    file: SCRIPTS,
    find: 'if not record.uncertain then return acquire(record.attempt + 1, false) end',
    replace: 'if not record.uncertain then return acquire(1, false) end',
    check: 'S6',
  },
  {
    name: 'an answer is stored with another body',
    file: STORE,
    find: `['1', bulk(body)]`,
    replace: `['1', Buffer.from('{}')]`,
    check: 'S8',
  },
  {
    name: 'two scopes share their keys',
    file: 'src/core/key.ts',
    find: 'encodeURIComponent(scope)',
    replace: `''`,
    check: 'S9',
  },
  {
    name: 'another body gets the answer of the first',
    file: 'src/core/verdict.ts',
    find: `if (bound !== null && bound !== fingerprint) return rejected('mismatched', options)`,
    replace: '',
    check: 'S9',
  },
  {
    name: 'a handler runs without a confirmed claim',
    file: ENGINE,
    find: `options.storeFailure === 'runUnprotected'`,
    replace: 'options.leaseMs > 0',
    check: 'S10',
  },
  {
    name: 'a disconnect releases the key',
    file: 'src/express/capture.ts',
    find: `    clientLeft = true
    pretend.closed(res, false)`,
    replace: `    clientLeft = true
    void execution.fail()
    pretend.closed(res, false)`,
    check: 'S11',
  },
  {
    name: 'a lease never lapses',
    file: SCRIPTS,
    find: 'if now < record.lease_until then',
    replace: 'if now then',
    check: 'L1',
    scale: 0.15,
  },
  {
    name: 'the client of an owner that lost its lease is forgotten',
    file: 'src/express/capture.ts',
    find: 'sendOther(settled, { outlet, handlerGoesOn: false })\n      }',
    replace: '}',
    check: 'L2',
  },
  {
    name: 'a timer keeps the process alive',
    file: ENGINE,
    find: 'store.observe?.(emit)',
    replace: 'store.observe?.(emit)\n  setInterval(() => {}, 60_000)',
    check: 'L3',
  },
]

/** Faults that real processes show; chaos is a matter of chance, and these are found at nearly every seed. */
export const mutants: readonly Mutant[] = planted.map((mutant) => ({ ...mutant, layer: 'chaos' }))
