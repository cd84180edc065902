" The directives of nginx-combined-upstreams, added to vim's own syntax for nginx.
" Copy this file to ~/.vim/after/syntax/, or add the folder contrib/vim to vim's runtimepath.

syn keyword ngxDirectiveBlock upstrand contained

syn keyword ngxDirectiveThirdParty add_upstream
syn keyword ngxDirectiveThirdParty combine_server_singlets
syn keyword ngxDirectiveThirdParty extend_single_peers
syn keyword ngxDirectiveThirdParty dynamic_upstrand

" In an upstrand block
syn keyword ngxDirectiveThirdParty next_upstream_statuses
syn keyword ngxDirectiveThirdParty next_upstream_timeout
syn keyword ngxDirectiveThirdParty next_upstream_tries
syn keyword ngxDirectiveThirdParty intercept_statuses
syn keyword ngxDirectiveThirdParty intercept_errors

" Common words: directives only where a line or a block begins.
syn match ngxDirectiveThirdParty '\(^\s*\|[{;]\s*\)\@<=upstream\ze\s[^{]\{-};'
syn match ngxDirectiveThirdParty '\(^\s*\|[{;]\s*\)\@<=order\ze\s'

syn match ngxUpstrandParameter '\s\zs\(backup\|blacklist_interval\)\ze[ =;]'
syn match ngxUpstrandParameter '\s\zs\(start_random\|per_request\|non_idempotent\|byname\|nobackup\)\ze[ ;]'

hi def link ngxUpstrandParameter PreProc
