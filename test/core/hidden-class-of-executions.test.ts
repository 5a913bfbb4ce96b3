import { afterAll, expect, test } from 'vitest'
import { runNode } from '../support/run-node.js'
import { transpiledPackage } from '../support/transpiled-package.js'

// Each execution had a getter of its own for its signal. V8 keeps the pair of a getter and a setter among its old objects:
// each kept its run, with all that the getter could see, until the old space was collected. Half of the time of a run went
// into moving such garbage. An object with a getter of its own tells itself by having no hidden class.

const files = await transpiledPackage()
afterAll(() => files.remove())

test('executions share a hidden class, signals looked at or not', async () => {
  const script = await files.write(
    'classes.mjs',
    `import { createRequestEngine } from 'once-per-key/http'
    import { MemoryStore } from 'once-per-key/memory'
    const engine = createRequestEngine({ store: new MemoryStore(), scope: () => 'acme' })
    const runs = []
    const execution = async (key) => {
      const facts = { request: {}, method: 'POST', target: '/', rawHeaders: ['Idempotency-Key', key], body: {} }
      const { run } = await engine.decide({ ...facts, bodyWasRead: true, isAbandoned: () => false })
      runs.push(run)
      return run.context
    }
    const [a, b, c] = [await execution('a'), await execution('b'), await execution('c')]
    const { signal } = b
    const isPlain = new Function('one', 'return %HasFastProperties(one)')
    const share = new Function('one', 'other', 'return %HaveSameMap(one, other)')
    console.log(isPlain(a), share(a, b), share(b, c), signal.aborted, { ...c }.signal === c.signal)
    for (const run of runs) await run.fail()`,
  )
  expect(await runNode('--allow-natives-syntax', script)).toEqual({
    exitCode: 0,
    stdout: 'true true true false true\n',
    stderr: '',
  })
})
