import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { startupSnapshot } from 'node:v8'

const bytes = Buffer.alloc(16)

/** The opened kernel's source; `undefined`: not opened yet; `null`: it cannot be read here. */
let kernelSource: number | null | undefined

/**
 * 128 random bits as text: unique, and impossible to guess. A flat string, because a record keeps it: `randomUUID`
 * leaves some twenty pieces that are joined only when they are read.
 *
 * Nothing is drawn in advance, and the kernel is used if possible: otherwise two processes restored from one snapshot
 * would continue with the same pool, or the same state of OpenSSL's generator, claim with the same token, and own each
 * other's records. The kernel's generator is shared by the machine's processes, and is reseeded in a cloned virtual
 * machine (Linux 5.18 or later, if the hypervisor reports it).
 */
export function newToken(): string {
  if (kernelSource === undefined) kernelSource = openKernelSource()
  if (!readKernelSource()) randomFillSync(bytes)
  return bytes.toString('base64url')
}

function openKernelSource(): number | null | undefined {
  try {
    // After a restore from the snapshot, the file descriptor would refer to another file.
    if (startupSnapshot.isBuildingSnapshot()) return undefined
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
    return readSync(kernelSource, bytes) === bytes.byteLength
  } catch {
    kernelSource = null
    return false
  }
}
