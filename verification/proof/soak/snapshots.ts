import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Claim } from 'once-per-key/core'
import { MemoryStore } from 'once-per-key/memory'
import { build, type Options } from 'tsup'
import type { Findings } from '../layer.js'

/** The bundle of `snapshot.main.ts`, beside the layer's own. */
const PROGRAM = fileURLToPath(new URL('./soak-snapshot.js', import.meta.url))
const LASTING_MS = 600_000
/** Much longer than a busy machine takes. */
const ENDS_WITHIN_MS = 60_000

/** Two processes that start from one V8 snapshot are two: what one of them claims is not the other's. */
export async function snapshots(findings: Findings): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'once-per-key-snapshot-'))
  try {
    // A snapshot is made from one script that imports nothing.
    const options = {
      format: 'cjs',
      noExternal: [/^once-per-key/],
      outExtension: () => ({ js: '.cjs' }),
    } satisfies Options
    await build({ ...options, entry: { service: PROGRAM }, outDir: folder, config: false, silent: true })
    const blob = join(folder, 'service.blob')
    const built = await claimsOf(findings, '--snapshot-blob', blob, '--build-snapshot', join(folder, 'service.cjs'))
    if (built === null) return
    const started = await Promise.all([1, 2].map(() => claimsOf(findings, '--snapshot-blob', blob, 'service')))

    const processes = [built, ...started].filter((claims) => claims !== null)
    for (const [process, claims] of processes.entries()) {
      findings.expect('L2', claims.length === 2, () => `process ${process} of a snapshot claims ${claims.length} times`)
      for (const other of processes.slice(0, process)) {
        for (const claim of claims) for (const earlier of other) await expectApart(earlier, claim, findings)
      }
    }
  } finally {
    await rm(folder, { recursive: true })
  }
}

async function expectApart(one: Claim, other: Claim, findings: Findings): Promise<void> {
  const store = new MemoryStore()
  await store.begin('order', { ...one, leaseMs: LASTING_MS, retentionMs: LASTING_MS })
  const { acquired } = await store.begin('order', other)
  findings.expect('S1', !acquired, () => 'a process of a snapshot owns what another one has claimed')
}

/** `null`: it did not end. */
async function claimsOf(findings: Findings, ...args: readonly string[]): Promise<Claim[] | null> {
  const { NODE_OPTIONS: _, ...env } = process.env
  const { killed, stdout } = await new Promise<{ readonly killed: boolean; readonly stdout: string }>(
    (resolve, reject) => {
      execFile(process.execPath, args, { env, timeout: ENDS_WITHIN_MS }, (error, stdout) => {
        if (error !== null && !error.killed) reject(error)
        else resolve({ killed: error !== null, stdout })
      })
    },
  )
  findings.expect(
    'L3',
    !killed,
    () => 'a process of a snapshot does not end, although all its claims have been answered',
  )
  if (killed) return null
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
}
