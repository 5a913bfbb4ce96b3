import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { giveTo } from '../../examples/servers/postgres-programs.js'

/** Of 127.0.0.1, signed by itself. */
export interface Certificate {
  readonly cert: Buffer
  readonly key: Buffer
  readonly certFile: string
  readonly keyFile: string
  remove(): void
}

/** Servers that do not run as root may read its files, too. */
export function newCertificate(): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'once-per-key-tls-'))
  const [certFile, keyFile] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const name = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2']
  const files = ['-keyout', keyFile, '-out', certFile]
  execFileSync('openssl', ['req', '-x509', ...curve, ...name, ...files], { stdio: 'ignore' })
  for (const path of [folder, certFile, keyFile]) giveTo(path)
  return {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    certFile,
    keyFile,
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
