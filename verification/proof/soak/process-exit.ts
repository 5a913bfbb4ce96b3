import { execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { inTime } from '../../../test/support/in-time.js'
import type { Findings, Violation } from '../layer.js'

/** The bundle of `service.main.ts`, beside the layer's own. */
const PROGRAM = fileURLToPath(new URL('./soak-service.js', import.meta.url))
const SCRIPT = fileURLToPath(new URL('./soak-script.js', import.meta.url))
/** Far below what the pending work of the service would keep it alive for, and far above what a busy machine needs. */
const WORK_LIMIT_MS = 60_000
const EXIT_LIMIT_MS = 60_000

/** A script whose callers wait ends when each was answered, and not before. */
export async function waits(findings: Findings): Promise<void> {
  const { code, said } = await new Promise<{ code: unknown; said: string }>((resolve) => {
    execFile(process.execPath, [SCRIPT], { timeout: WORK_LIMIT_MS, killSignal: 'SIGKILL' }, (error, said) =>
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), said: said.trim() }),
    )
  })
  findings.expect('L2', said === ANSWERS, () => `a script whose callers wait ended with ${code}, and said: ${said}`)
  findings.expect('L3', code === 0, () => `a script whose callers were answered ended with ${code}`)
}

const ANSWERS = JSON.stringify({
  claimed: 'paid',
  failed: 'declined',
  inspected: 'failed',
  resolved: true,
  waitedHere: 'paid',
  waitedElsewhere: 'paid',
  stored: 'completed',
})

/** A service in a process of its own works, closes, and must end by itself. */
export async function exits(findings: Findings): Promise<void> {
  const child = fork(PROGRAM, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  try {
    const [told] = await inTime(Promise.race([once(child, 'message'), exited.then(() => [null])]), WORK_LIMIT_MS)
    const violations = (told as { violations: Violation[] } | null)?.violations
    findings.expect('L2', violations?.length === 0, () => `the service that was to exit: ${JSON.stringify(violations)}`)
    const [code] = await inTime(exited, EXIT_LIMIT_MS)
    findings.expect('L3', code === 0, () => `the process exited with code ${code}`)
  } catch (error) {
    findings.expect('L3', false, () => `the process does not end after its server was closed: ${error}`)
  } finally {
    child.kill('SIGKILL')
  }
}
