import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { startupSnapshot } from 'node:v8'

const TOKEN_BYTES = 16

/**
 * Random bits for the next tokens. With a read of the kernel for each, a token takes 2.7 µs of CPU instead of 0.3 (Node 20.20 and
 * 24.22, a loop of 1,000,000): 5 % of a first request. In a virtual machine, whose system calls are slow, the
 * reads for a pool of 32 tokens instead of 128 were 4 % of what a first request in memory adds.
 */
const pool = new Int32Array(512)
const poolBytes = Buffer.from(pool.buffer)
/** Where the bytes of the next token begin. */
let next = poolBytes.byteLength

/** The opened kernel's source; `undefined`: not opened yet; `null`: it cannot be read here. */
let kernelSource: number | null | undefined

/**
 * 128 random bits as text: unique, and impossible to guess. A flat string, because a record keeps it: `randomUUID`
 * leaves some twenty pieces that are joined only when they are read.
 *
 * Two copies of a process must not claim with the same token, and own each other's records. A V8 snapshot has none in its pool.
 * In copies of its memory (CRIU, a cloned virtual machine) there are at most 128 tokens, and the time is mixed in when one is
 * used: they would have to claim the same key with the same one in the same nanosecond. Later ones come from the kernel, which is
 * shared by the machine's processes, and is reseeded in a cloned virtual machine (Linux 5.18 or later, if the hypervisor reports
 * it); OpenSSL's generator would be copied.
 */
export function createToken(): string {
  if (next === poolBytes.byteLength) refillPool()
  const nanoseconds = performance.now() * 1e6
  const word = next / pool.BYTES_PER_ELEMENT
  pool[word] = (pool[word] as number) ^ nanoseconds
  const token = poolBytes.toString('base64url', next, next + TOKEN_BYTES)
  next += TOKEN_BYTES
  return token
}

function refillPool(): void {
  if (kernelSource === undefined) kernelSource = openKernelSource()
  if (!readKernelSource()) randomFillSync(pool)
  next = isBuildingSnapshot() ? poolBytes.byteLength - TOKEN_BYTES : 0
}

function openKernelSource(): number | null | undefined {
  // After a restore from the snapshot, the file descriptor would refer to another file.
  if (isBuildingSnapshot()) return undefined
  try {
    const file = openSync('/dev/urandom', 'r')
    if (fstatSync(file).isCharacterDevice()) return file
    closeSync(file) // Not a character device: a file that somebody created, for example on Windows.
    return null
  } catch {
    return null // It does not exist, or this process may not read files.
  }
}

function readKernelSource(): boolean {
  if (typeof kernelSource !== 'number') return false
  try {
    return readSync(kernelSource, pool) === pool.byteLength
  } catch {
    kernelSource = null
    return false
  }
}

function isBuildingSnapshot(): boolean {
  try {
    return startupSnapshot.isBuildingSnapshot()
  } catch {
    return false // A runtime without snapshots.
  }
}
