import { Buffer } from 'node:buffer'
import { randomFillSync } from 'node:crypto'

const TOKEN_BYTES = 16

const pool = Buffer.alloc(128 * TOKEN_BYTES)
let used = pool.byteLength

/**
 * 128 random bits as text: nobody else can have the same, or guess it. One flat string, since a record keeps it:
 * `randomUUID` leaves some twenty pieces that are joined only when they are read.
 */
export function newToken(): string {
  if (used === pool.byteLength) {
    randomFillSync(pool)
    used = 0
  }
  used += TOKEN_BYTES
  return pool.toString('base64url', used - TOKEN_BYTES, used)
}
