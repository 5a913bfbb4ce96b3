import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { startupSnapshot } from 'node:v8'

const bytes = Buffer.alloc(16)

/** The open kernel's source; `undefined`: not opened yet; `null`: it cannot be read here. */
let kernelSource: number | null | undefined

/**
 * 128 random bits as text: nobody else can have the same, or guess it. One flat string, since a record keeps it:
 * `randomUUID` leaves some twenty pieces that are joined only when they are read.
 *
 * Nothing is drawn in advance, and from the kernel where possible: of two processes that were restored from one snapshot,
 * each would continue with the same pool, or the same state of OpenSSL's generator, claim with the same token, and own the
 * other's record. The kernel's source goes on in one machine, and is reseeded in a virtual machine that was cloned
 * (Linux 5.18 or later, where the hypervisor tells it so).
 */
export function newToken(): string {
  if (kernelSource === undefined) kernelSource = openKernelSource()
  if (!readKernelSource()) randomFillSync(bytes)
  return bytes.toString('base64url')
}

function openKernelSource(): number | null | undefined {
  try {
    // A file descriptor would mean another file in the processes that start from the snapshot.
    if (startupSnapshot.isBuildingSnapshot()) return undefined
    const file = openSync('/dev/urandom', 'r')
    if (fstatSync(file).isCharacterDevice()) return file
    closeSync(file) // Anybody may have put it there, such as on Windows.
    return null
  } catch {
    return null // There is none, or this process may not read files.
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
