import type { Mutant } from '../mutants/mutant.js'

const MEMORY_STORE = 'adapters/memory/memory-store.ts'
const SHELVES = 'adapters/memory/shelves.ts'
const EXECUTION = 'src/core/execution.ts'
const ENGINE = 'src/core/engine.ts'
const COMMANDS = 'src/core/commands.ts'
const SOCKET_VIEW = 'src/express/socket-view.ts'
const CAPTURE = 'src/express/capture.ts'
const layer = 'soak'

export const mutants: readonly Mutant[] = [
  {
    name: 'memory: the bytes of bodies are not counted',
    file: 'adapters/memory/kept-answer.ts',
    find: ' + (this.#body?.length ?? 0)',
    replace: '',
    layer: 'soak',
    check: 'S12',
  },
  {
    name: 'memory: headers are not counted',
    file: 'adapters/memory/kept-answer.ts',
    find: ' + this.#headers.length',
    replace: '',
    layer: 'soak',
    check: 'S12',
  },
  {
    name: 'memory: the bound on the number of records is off by one',
    file: MEMORY_STORE,
    find: 'return count < this.#maxEntries &&',
    replace: 'return count <= this.#maxEntries &&',
    layer,
    check: 'S12',
  },
  {
    name: 'memory: an expired record never leaves',
    file: SHELVES,
    find: 'if (oldest === undefined || now < oldest.expiresAt) continue',
    replace: 'if (oldest === undefined || now < Number.MAX_VALUE) continue',
    layer,
    check: 'L1',
  },
  {
    name: 'memory: a record in flight or uncertain is evicted',
    file: SHELVES,
    find: 'const oldest = shelf.completed ? oldestOf(shelf.records) : undefined',
    replace: 'const oldest = oldestOf(shelf.records)',
    layer,
    check: 'S12',
  },
  {
    name: 'memory: a record that is still wanted is dropped to make room',
    file: MEMORY_STORE,
    find: 'const helps = this.#evicts && this',
    replace: 'const helps = this',
    layer,
    check: 'S12',
  },
  {
    name: 'memory: an eviction is not told',
    file: MEMORY_STORE,
    find: 'for (let i = 0; i < evictions; i++)',
    replace: 'for (let i = 1; i < evictions; i++)',
    layer,
    check: 'S12',
  },
  {
    name: 'the timer of a run outlives it',
    file: EXECUTION,
    find: 'over = true\n    clearTimeout(timer)',
    replace: 'over = true',
    layer,
    check: 'S12',
  },
  {
    name: "the timer of a command's limit outlives its reply",
    file: COMMANDS,
    find: 'clearTimeout(timer)\n        resolve(reply)',
    replace: 'resolve(reply)',
    layer,
    check: 'S12',
  },
  {
    name: 'a run is still counted when it has ended',
    file: EXECUTION,
    find: '    if (renewing === undefined) onEnd()\n',
    replace: '    if (settled === undefined || mayHaveHadEffect) return\n    if (renewing === undefined) onEnd()\n',
    layer,
    check: 'L3',
  },
  {
    name: 'a decision is still counted when it was made',
    file: ENGINE,
    find: 'return await deciding()\n    } finally {\n      onEnd()\n    }',
    replace: 'return await deciding()\n    } finally {\n      if (active > 1_000_000) onEnd()\n    }',
    layer,
    check: 'L3',
  },
  {
    name: 'executions are remembered',
    file: EXECUTION,
    find: '  let mayHaveHadEffect = false\n',
    replace:
      '  let mayHaveHadEffect = false\n  ;((globalThis as { ends?: unknown[] }).ends ??= []).push(() => end())\n',
    layer,
    check: 'S12',
  },
  {
    name: 'a listener that a library took off the socket of its response is put on it',
    file: SOCKET_VIEW,
    find: 'this.#waiting = this.#waiting.filter((one) => one.event !== event || one.listener !== listener)\n',
    replace: '',
    layer,
    check: 'S12',
  },
  {
    name: 'a held response listens on its connection, for good',
    file: CAPTURE,
    find: 'const before = snapshotOf(res)\n  const held',
    replace: "const before = snapshotOf(res)\n  clientSocket.on('close', () => void stage)\n  const held",
    layer,
    check: 'S12',
  },
  {
    name: 'a disconnect releases',
    file: CAPTURE,
    find: 'function withholdClose(): void {\n    clientLeft = true',
    replace: 'function withholdClose(): void {\n    void execution.fail()\n    clientLeft = true',
    layer,
    check: 'S11',
  },
  {
    name: 'the renewal of a lease keeps the process alive',
    file: EXECUTION,
    find: 'let timer = setTimeout(tick, Math.ceil(leaseMs / 3)).unref()',
    replace: 'let timer = setTimeout(tick, Math.ceil(leaseMs / 3))',
    layer,
    check: 'L3',
  },
  {
    name: 'a pause keeps the process alive',
    file: COMMANDS,
    find: 'setTimeout(resolve, ms).unref()',
    replace: 'setTimeout(resolve, ms)',
    layer,
    check: 'L3',
  },
  {
    name: 'the limit of a command keeps the process alive',
    file: COMMANDS,
    find: '}, timeoutMs).unref()',
    replace: '}, timeoutMs)',
    layer,
    check: 'L3',
  },
]
