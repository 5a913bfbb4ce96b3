// Part of the release workflow: fails unless the tag, package.json and CHANGELOG.md name one version and the repository is
// filled in. Prints the version's section of the changelog, which is the text of the release.
import { readFileSync } from 'node:fs'
import { addressOf } from './address.mjs'

const { GITHUB_REF_NAME: tag = '', GITHUB_REPOSITORY: repository = '' } = process.env
const manifest = JSON.parse(readFileSync('package.json', 'utf8'))
const address = addressOf(manifest)
const section = readFileSync('CHANGELOG.md', 'utf8').split(/^(?=## \[)/m)[1] ?? ''
const [heading = '', ...lines] = section.split('\n')

const faults = [
  tag !== `v${manifest.version}` && `The tag is ${tag}, and package.json has version ${manifest.version}.`,
  !new RegExp(`^## \\[${manifest.version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d\\d-\\d\\d$`).test(heading) &&
    `CHANGELOG.md begins with "${heading}": it needs the version and its date.`,
  (address === null || !address.endsWith(`/${repository}`)) &&
    `repository of package.json is ${address ?? 'not filled in'}: expected the address of ${repository}.`,
].filter((fault) => fault !== false)

if (faults.length > 0) {
  console.error(faults.join('\n'))
  process.exit(1)
}
console.log(lines.join('\n').trim())
