# Warnings and sanitizers, for every target of the project.
add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-psabi)
if(CNN_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
if(CNN_SANITIZE)
  add_compile_options(-fsanitize=${CNN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CNN_SANITIZE})
endif()
